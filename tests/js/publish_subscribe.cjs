// Logs in like login.cjs, subscribes, publishes, and waits for messages.
// Further options: subscribe (a filter), publish: [{topic, payload, qos, correlation (hex), responseTopic}],
//   receive (how many messages to wait for), timeoutMs, answer (text to send to a received message's Response Topic).
// Outcome: {connected, reason, ..., granted, published: [{topic, reason}], received: [{topic, payload, qos, retain,
//   correlation (hex), responseTopic}]}; `granted` is the SUBACK's code, `reason` of a publish null at QoS 0.
'use strict'

const { connect, failed, finish, readOptions, welcomed } = require('./session.cjs')

async function main() {
  const options = readOptions()
  const { client, connack } = await connect(options)
  const received = []
  const enough = collect(client, options, received)
  const outcome = { ...welcomed(connack), granted: null, published: [], received }
  if (options.subscribe) outcome.granted = await subscribe(client, options.subscribe)
  for (const message of options.publish ?? []) outcome.published.push(await publish(client, message))
  if (options.receive) {
    await Promise.race([enough, new Promise((resolve) => setTimeout(resolve, options.timeoutMs ?? 10_000).unref())])
  }
  await client.endAsync()
  return outcome
}

function collect(client, options, received) {
  return new Promise((resolve) => {
    client.on('message', (topic, payload, packet) => {
      received.push({
        topic,
        payload: payload.toString(),
        qos: packet.qos,
        retain: packet.retain,
        correlation: packet.properties?.correlationData?.toString('hex') ?? null,
        responseTopic: packet.properties?.responseTopic ?? null,
      })
      if (options.answer && packet.properties?.responseTopic) {
        const properties = { correlationData: packet.properties.correlationData }
        client.publish(packet.properties.responseTopic, options.answer, { qos: 1, properties }, () => check())
      } else {
        check()
      }
    })
    const check = () => received.length >= (options.receive ?? 0) && resolve()
  })
}

function subscribe(client, filter) {
  return new Promise((resolve, reject) => {
    client.subscribe(filter, { qos: 1 }, (error, granted, packet) => {
      if (packet?.granted?.length) return resolve(packet.granted[0])
      return error ? reject(error) : resolve(granted[0].qos)
    })
  })
}

function publish(client, { topic, payload, qos = 1, correlation, responseTopic }) {
  const properties = {}
  if (correlation) properties.correlationData = Buffer.from(correlation, 'hex')
  if (responseTopic) properties.responseTopic = responseTopic
  return new Promise((resolve) => {
    client.publish(topic, payload, { qos, properties }, (error, packet) => {
      if (error) return resolve({ topic, reason: error.code ?? null, error: error.message })
      return resolve({ topic, reason: qos === 0 ? null : (packet?.reasonCode ?? 0) })
    })
  })
}

main().catch((error) => failed(error)).then(finish)
