/** Why terminals are refused, in Chinese, by the reason's code; English comes with the answer. */
import { language } from "./words.ts";

const CHINESE: Record<string, readonly [text: string, advice: string]> = {
  wrong_user_name: ["用户名与终端记录不符", "核对记录中的 username：区分大小写和空格"],
  wrong_pin: ["用户名正确，但密码不是该终端的 pin", "核对记录中的 pin；auto 模式需要签名而不是 pin"],
  wrong_signature: ["用户名正确，但密码不是用该终端 pin 生成的签名（auto 模式）", "核对 pin；密码格式为 <unix 秒>.<HMAC-SHA256 十六进制>"],
  scram_message: ["无法读取 SCRAM 消息", "检查终端的 SCRAM 库（RFC 5802）"],
  unknown_terminal: ["没有登记此 uid 的终端", "登记该终端，或更正其客户端 ID：必须与记录的 uid 一致"],
  no_credentials: ["没有提供用户名或密码", "在终端上配置记录中的 username 和 pin"],
  clock_off: ["签名正确，但时间不正确", "校准终端时钟（NTP）；时间为 UTC 的 Unix 秒或毫秒"],
  replayed: ["签名正确，但时间不晚于上次成功登录", "每次登录需要更晚的时间；如果不是终端本身，则有人在重放密码：请使用 TLS"],
  scram_required: ["使用密码登录，但记录要求 SCRAM（dixie = 1）", "让终端通过 MQTT 5 的 SCRAM 登录，或将 dixie 设为 0"],
  scram_method: ["请求了不存在的认证方法", "配置 SCRAM-SHA-1、SCRAM-SHA-256 或普通密码"],
  terminal_disabled: ["凭据正确，但终端已停用", "将 is_available 设为 1"],
  company_closed: ["凭据正确，但终端所属公司已关闭", "由超级用户将公司的 is_available 设为 1"],
  certificate_name: ["凭据正确，但客户端证书的通用名不是 uid", "为终端配置通用名为其 uid 的证书，或不使用证书"],
  certificate_missing: ["没有出示客户端证书，而记录要求证书（cert 模式）", "为终端配置证书、密钥和 TLS 端口；或改用其他模式和 pin"],
  certificate_uid: ["客户端证书属于其他 uid", "证书的 DNS 或 URI 名称（或通用名）必须是记录的 uid"],
  certificate_expired: ["客户端证书已过期", "更换证书；核对双方时钟"],
  certificate_not_yet_valid: ["客户端证书尚未生效", "核对平台与签发方的时钟"],
  certificate_authority: ["客户端证书不是由本公司的机构签发", "签发机构（包括中间机构）必须登记在 get_terminal_authority_list 中"],
  certificate_unusable: ["该客户端证书不能用于终端登录", "要求：一个 uid，非 CA，digitalSignature，clientAuth（见 docs/terminals.md）"],
  record_changed: ["登录期间终端记录被修改", "无需处理：它会重新登录"],
  throttled: ["该地址或该 uid 登录失败过多，需要等待", "先解决之前失败的原因；unlock_terminal 可立即解除"],
  login_busy: ["等待 SCRAM 密钥的登录过多", "无需处理：它会重试；若持续存在，请查找大量登录的来源"],
  claim_refused: ["认领密钥正确，但不允许此终端", "get_claim_key_list 显示密钥的用量、期限和前缀；认领需要 TLS"],
  claim_unfinished: ["认领的 pin 正确，但无法创建记录", "可能原因：公司终端数已满、密钥已用完，或 uid 已被占用"],
  tls_failed: ["TLS 握手失败", "核对签发机构、主机名、时钟与服务器证书；TLS 1.2 或 1.3；明文 MQTT 使用其他端口"],
  proxy_header: ["PROXY 协议头缺失或无法读取", "让代理发送该头，或从 http.trusted_proxies 中移除该地址"],
  upgrade_refused: ["HTTP 请求不是 MQTT over WebSocket", "使用路径 /mqtt 和子协议 mqtt；网页需在 http.allowed_origins 中列出来源"],
  half_open: ["来自该处的未登录连接过多", "查找打开这些连接的来源；limits.half_open_per_address"],
  login_timeout: ["已打开连接但未及时登录", "检查中间网络（MTU、防火墙），以及终端在此端口是否使用 MQTT"],
  unsupported_protocol: ["MQTT 版本不是 3.1、3.1.1 或 5.0", "配置 MQTT 3.1.1 或 5.0"],
  client_id_not_valid: ["客户端 ID 为空", "将记录的 uid 配置为客户端 ID"],
  connect_rate: ["同时连接的终端过多", "无需处理：它会重试；若持续存在，请提高 limits.connects_per_second"],
  too_many_connections: ["已达到连接数上限", "提高 limits.connections"],
  login_unavailable: ["平台错误导致登录失败", "查看日志并报告"],
  connack_too_large: ["终端的 Maximum Packet Size 过小", "在终端上提高 Maximum Packet Size"],
  malformed_packet: ["发送的内容无法作为 MQTT 读取", "向固件厂商报告；明文 MQTT 时检查途中是否被修改"],
  protocol_error: ["发送的内容在此时不被 MQTT 允许", "将详情报告给固件厂商"],
  packet_too_large: ["报文过大", "减少单次发送量；limits.mqtt_packet_bytes，登录前为 limits.connect_bytes"],
  receive_maximum_exceeded: ["未确认的发布过多", "终端应遵守 Receive Maximum；limits.inflight"],
  topic_alias_invalid: ["使用了不允许的主题别名", "终端应遵守登录应答中的 Topic Alias Maximum"],
  topic_name_invalid: ["发布到了无效主题", "发布到 g/<uid>/<通道>：不含通配符，不超过 200 级"],
  storage_unavailable: ["代理的磁盘无法写入", "释放磁盘空间；terrazzo doctor"],
  internal_error: ["平台错误", "查看日志并报告"],
  publish_not_allowed: ["记录不允许发布到该主题", "核对主题与记录的 access 和 topic；其他终端的主题需要 is_route"],
  publish_quota: ["该主题的订阅者积压过多", "查找缓慢或离线的订阅者；limits.queued_messages"],
  publish_rate: ["发布速度超过允许，读取较慢", "降低发布频率，或提高 limits.publish_per_second"],
  retained_quota: ["保留消息已达上限", "删除保留消息，或提高 limits.terminal_retained_messages"],
  payload_format_invalid: ["负载不是其格式标识所称的 UTF-8", "MessagePack 和加密负载请将 Payload Format Indicator 设为 0"],
  payload_refused: ["负载无法读取，或其时间超前于时钟", "get_reject_list 中有负载和错误原因"],
  subscribe_not_allowed: ["记录不允许订阅该过滤器", "核对过滤器与记录的 access 和 topic；p2p/<uid> 总是允许"],
  topic_filter_invalid: ["订阅的不是有效主题过滤器", "# 只能单独在末尾，+ 占一整级；不超过 200 级"],
  subscription_quota: ["该终端或其公司的订阅数已达上限", "减少订阅，或提高 limits.company_subscriptions"],
  taken_over: ["另一个连接使用了相同的客户端 ID 登录", "来自同一地址时是终端断线重连；来自其他地址时是两台设备使用同一 uid"],
  keep_alive_timeout: ["超过 1.5 倍 keep-alive 没有发送任何内容", "检查电源和网络；网络会休眠时使用更长的 keep-alive"],
  not_reading: ["内存紧张时没有读取发给它的内容", "减少订阅，或更快读取；limits.memory_mib"],
  ended_by_server: ["平台结束了连接", "详情中有原因；记录更改后它会自行重新登录"],
  session_expired: ["离线期间会话已过期：订阅已丢失", "延长会话期限（session_expiry）；Session Present 为 0 时应重新订阅"],
};

/** What is wrong, in the language that is shown. */
export function reasonText(code: string, english: string): string {
  return (language.value === "zh" && CHINESE[code]?.[0]) || english || code;
}

/** What to do about it. */
export function adviceText(code: string, english: string): string {
  return (language.value === "zh" && CHINESE[code]?.[1]) || english;
}

export const KNOWN_REASONS = Object.keys(CHINESE);
