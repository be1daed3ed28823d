/** Ready commands that connect a terminal, for tools that people have. */

export interface Connecting {
  host: string;
  port: number;
  uid: string;
  username: string;
  pin: string;
  websocketPort: number | null;
  websocketTlsPort?: number | null;
  /** `port` speaks TLS. */
  isTls?: boolean;
  /** The terminal logs in with its certificate, over TLS, and has no password. */
  isCert?: boolean;
}

export interface Snippet {
  name: string;
  text: string;
}

/** A word of a shell, whatever it holds. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const READING = '{"Temperature": 21.5}';
/** Who has signed the platform's certificate, as the snippets name it. */
export const SERVER_CA = "server-ca.pem";

/** Where MQTT.js connects: over WebSocket, which it speaks in browsers too, where the platform has it so. */
function addressOf(to: Connecting): string {
  if (isSecure(to)) return to.websocketTlsPort && !to.isCert ? `wss://${to.host}:${to.websocketTlsPort}/mqtt` : `mqtts://${to.host}:${to.port}`;
  return to.websocketPort ? `ws://${to.host}:${to.websocketPort}/mqtt` : `mqtt://${to.host}:${to.port}`;
}

const isSecure = (to: Connecting): boolean => !!to.isTls || !!to.isCert;
const q = JSON.stringify;

/** mosquitto_pub, paho, MQTT.js and Arduino, with this terminal's names. */
export function snippets(to: Connecting): Snippet[] {
  return [
    { name: "mosquitto_pub", text: mosquitto(to) },
    { name: "Python (paho-mqtt)", text: paho(to) },
    { name: "MQTT.js", text: mqttJs(to) },
    { name: "Arduino (PubSubClient)", text: arduino(to) },
  ];
}

const topicOf = (to: Connecting): string => `g/${to.uid}/r`;
const ownCert = (to: Connecting): string => `${to.uid}.pem`;
const ownKey = (to: Connecting): string => `${to.uid}.key`;

function mosquitto(to: Connecting): string {
  const proof = to.isCert ? `--cert ${shellWord(ownCert(to))} --key ${shellWord(ownKey(to))}` : `-u ${shellWord(to.username)} -P ${shellWord(to.pin)}`;
  const secure = isSecure(to) ? ` --cafile ${SERVER_CA}` : "";
  return `mosquitto_pub -h ${shellWord(to.host)} -p ${to.port}${secure} -i ${shellWord(to.uid)} ${proof} \\\n  -q 1 -t ${shellWord(topicOf(to))} -m '${READING}'`;
}

function paho(to: Connecting): string {
  const own = to.isCert ? `, certfile=${q(ownCert(to))}, keyfile=${q(ownKey(to))}` : "";
  return [
    "import paho.mqtt.client as mqtt",
    `client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=${q(to.uid)})`,
    ...(isSecure(to) ? [`client.tls_set(${q(SERVER_CA)}${own})`] : []),
    ...(to.isCert ? [] : [`client.username_pw_set(${q(to.username)}, ${q(to.pin)})`]),
    "client.on_message = lambda client, data, message: print(message.topic, message.payload)",
    `client.connect(${q(to.host)}, ${to.port})`,
    `client.subscribe(${q(`p2p/${to.uid}`)}, qos=1)`,
    "client.loop_start()",
    `client.publish(${q(topicOf(to))}, ${q(READING)}, qos=1).wait_for_publish()`,
  ].join("\n");
}

function mqttJs(to: Connecting): string {
  const address = addressOf(to);
  const isTls = /^(mqtts|wss):/.test(address);
  const own = to.isCert ? [`  cert: readFileSync(${q(ownCert(to))}), key: readFileSync(${q(ownKey(to))}),`] : [];
  return [
    'import mqtt from "mqtt";',
    ...(isTls ? ['import { readFileSync } from "node:fs";'] : []),
    `const client = await mqtt.connectAsync(${q(address)}, {`,
    ...(isTls ? [`  ca: readFileSync(${q(SERVER_CA)}),`, ...own] : []),
    `  clientId: ${q(to.uid)}, ${to.isCert ? "" : `username: ${q(to.username)}, password: ${q(to.pin)}, `}protocolVersion: 5,`,
    "});",
    `await client.publishAsync(${q(topicOf(to))}, ${q(READING)}, { qos: 1 });`,
  ].join("\n");
}

function arduino(to: Connecting): string {
  const proof = to.isCert ? "" : `, ${q(to.username)}, ${q(to.pin)}`;
  const secure = isSecure(to);
  return [
    secure ? "#include <WiFiClientSecure.h>" : "#include <WiFi.h>",
    "#include <PubSubClient.h>",
    ...(secure ? [`extern const char SERVER_CA[];  // the text of ${SERVER_CA}`] : []),
    ...(to.isCert ? [`extern const char OWN_CERT[], OWN_KEY[];  // the texts of ${ownCert(to)} and ${ownKey(to)}`] : []),
    secure ? "WiFiClientSecure net;" : "WiFiClient net;",
    "PubSubClient mqtt(net);",
    "void report() {",
    ...(secure ? ["  net.setCACert(SERVER_CA);"] : []),
    ...(to.isCert ? ["  net.setCertificate(OWN_CERT);", "  net.setPrivateKey(OWN_KEY);"] : []),
    `  mqtt.setServer(${q(to.host)}, ${to.port});`,
    `  if (mqtt.connected() || mqtt.connect(${q(to.uid)}${proof}))`,
    `    mqtt.publish(${q(topicOf(to))}, ${q(READING)});`,
    "}",
  ].join("\n");
}
