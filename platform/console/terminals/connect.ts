/** Ready commands that connect a terminal, for tools that people have. */

export interface Connecting {
  host: string;
  port: number;
  uid: string;
  username: string;
  pin: string;
  websocketPort: number | null;
  websocketTlsPort?: number | null;
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

/** Where MQTT.js connects: a page of https: may open secure WebSockets alone, so they come first. */
function addressOf(to: Connecting): string {
  if (to.websocketTlsPort) return `wss://${to.host}:${to.websocketTlsPort}/mqtt`;
  return to.websocketPort ? `ws://${to.host}:${to.websocketPort}/mqtt` : `mqtt://${to.host}:${to.port}`;
}

/** mosquitto_pub, paho, MQTT.js and Arduino, with this terminal's names. */
export function snippets(to: Connecting): Snippet[] {
  const { host, port, uid, username, pin } = to;
  const topic = `g/${uid}/r`;
  const q = JSON.stringify;
  const found = [
    {
      name: "mosquitto_pub",
      text: `mosquitto_pub -h ${shellWord(host)} -p ${port} -i ${shellWord(uid)} -u ${shellWord(username)} -P ${shellWord(pin)} \\\n  -q 1 -t ${shellWord(topic)} -m '${READING}'`,
    },
    {
      name: "Python (paho-mqtt)",
      text: [
        "import paho.mqtt.client as mqtt",
        `client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=${q(uid)})`,
        `client.username_pw_set(${q(username)}, ${q(pin)})`,
        "client.on_message = lambda client, data, message: print(message.topic, message.payload)",
        `client.connect(${q(host)}, ${port})`,
        `client.subscribe(${q(`p2p/${uid}`)}, qos=1)`,
        "client.loop_start()",
        `client.publish(${q(topic)}, ${q(READING)}, qos=1).wait_for_publish()`,
      ].join("\n"),
    },
    {
      name: "MQTT.js",
      text: [
        'import mqtt from "mqtt";',
        `const client = await mqtt.connectAsync(${q(addressOf(to))}, {`,
        `  clientId: ${q(uid)}, username: ${q(username)}, password: ${q(pin)}, protocolVersion: 5,`,
        "});",
        `await client.publishAsync(${q(topic)}, ${q(READING)}, { qos: 1 });`,
      ].join("\n"),
    },
    {
      name: "Arduino (PubSubClient)",
      text: [
        "#include <WiFi.h>",
        "#include <PubSubClient.h>",
        "WiFiClient net;",
        "PubSubClient mqtt(net);",
        "void report() {",
        `  mqtt.setServer(${q(host)}, ${port});`,
        `  if (mqtt.connected() || mqtt.connect(${q(uid)}, ${q(username)}, ${q(pin)}))`,
        `    mqtt.publish(${q(topic)}, ${q(READING)});`,
        "}",
      ].join("\n"),
    },
  ];
  return found;
}
