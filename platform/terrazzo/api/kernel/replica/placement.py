"""Where an operation is answered when there are several nodes. What is named nowhere here changes something."""

from __future__ import annotations

from terrazzo.api.kernel.operation import Operation

OWN = frozenset(
    {
        # sign-in, against the users in the database
        *("login", "logout", "ping", "get_login_options", "get_session"),
        # records of the registry
        *("get_user_item", "get_user_list", "get_company_item", "get_company_list"),
        *("get_terminal_config_item", "get_terminal_config_list", "get_claim_key_list", "get_terminal_authority_list"),
        *("get_mapping_item", "get_mapping_list", "get_control_item", "get_control_list"),
        *("get_customer_item", "get_customer_list", "get_project_item", "get_project_list"),
        *("get_retainer_item", "get_retainer_list", "get_statistics_item", "get_statistics_script_list"),
        *("get_calculate_item", "get_calculate_script_list", "get_balance_item", "get_balance_list"),
        *("get_dashboard_item", "get_dashboard_list", "get_object_dashboard_list", "get_rule_item", "get_rule_list"),
        *("get_event_definition_list", "get_variable_definition_list", "get_object_variable_list"),
        *("get_former_terminal_list", "search"),
        *("get_campaign_item", "get_campaign_list", "get_campaign_terminal_list"),
        *("service/getItem", "service/getList", "statistics/serviceTypeQuantityByDay"),
        *("collect/getItem", "collect/getList"),
        *("collectos/getItem", "collectos/getList", "collectos/getLastItem"),
        *("terminal/getItem", "terminal/getList", "config/getItem", "config/getList"),
        *("control/getItem", "control/getList", "mapping/getItem", "mapping/getList"),
        *("dashboard/getItem", "dashboard/getList", "object/getDashboardByCategory"),
        *("group/getItem", "group/getList", "groupmap/getItem", "groupmap/getList", "file/getItem", "file/getList"),
        # time series
        *("get_last_grid", "get_grid_item", "get_last_grid_list", "get_grid_list", "get_grid_chart"),
        *("get_last_mosaic", "get_mosaic_item", "get_last_mosaic_list", "get_mosaic_list", "get_mosaic_list_by_key"),
        *("get_mosaic_chart", "get_mapped_messages", "get_reject_list"),
        *("export_mosaic", "export_grid", "influx_query"),
        # records as files
        *("export_terminal_configs", "export_terminals", "export_mappings", "export_controls", "export_customers"),
        "export_objects",
        # results, journals and logs in the database
        *("get_last_statistics", "get_statistics_list", "get_last_calculate", "get_calculate_list"),
        *("get_balance_result_list", "get_last_balance_result", "get_recompute_progress"),
        *("statos_list", "statos_item", "statos_last_item"),
        *("get_event_list", "get_event_item", "get_event_quantity", "get_event_quantity_by_day"),
        *("get_retainer_label_list", "get_retainer_label_item", "get_open_retainer_list"),
        *("get_retainer_quantity", "get_retainer_quantity_by_day", "get_object_log", "get_presence_list"),
        *("get_handover_list", "get_handover_item", "get_command_list", "get_rule_command_list"),
        *("get_audit_list", "get_message_list"),
        # what happens
        *("subscribe", "unsubscribe"),
    }
)
"""A replica answers these itself, from its own store and the shared database."""

OF_LEADER = frozenset(
    {
        *("get_terminal_item", "get_terminal_list", "get_terminal_status", "get_attention"),
        *("get_object_item", "get_object_list", "object/getItem", "object/getList"),
        *("get_unknown_terminal_list", "get_address_refusals", "get_login_failure_list", "get_trace"),
        *("get_broker_status", "get_client_list", "get_subscription_list", "get_retained_list"),
        *("get_platform_status", "get_intake", "get_api_key_list", "get_shift", "check_mapping"),
        *("get_replay_item", "get_replay_list"),
        *("get_wall_link", "get_wall", "get_wall_values", "get_wall_chart"),
    }
)
"""Reads that need what the leader alone has in memory, who is connected above all: a replica asks it."""

LEADERS_FILES = frozenset({"file/download", "get_wall_picture"})
"""Reads of files, which are on the node where they were uploaded: a replica refuses them, as it refuses changes."""


def changes_something(operation: Operation) -> bool:
    """Whether what is asked may have an effect, after which reads should see it."""
    name = operation.name
    return name not in OWN and name not in OF_LEADER and name not in LEADERS_FILES
