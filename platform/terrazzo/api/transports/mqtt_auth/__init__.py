"""Questions of MQTT brokers beside the platform: who may log in, and which topics.

======== ========================================================
fields   the fields of a question, JSON or a form
routes   who may ask, and the answers as each broker reads them
rabbitmq RabbitMQ's questions about users, queues and routing keys
======== ========================================================
"""
