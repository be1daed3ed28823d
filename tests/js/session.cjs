// One MQTT.js connection as the scripts here use it: options from the command line, one JSON line at the end.
'use strict'

const mqtt = require('mqtt')
const { Scram } = require('./scram.cjs')

const DEADLINE_MS = 10_000

function readOptions() {
  return { host: '127.0.0.1', protocolVersion: 5, keepalive: 30, clean: true, ...JSON.parse(process.argv[2]) }
}

// Prints the outcome and ends the process.
function finish(outcome) {
  process.stdout.write(JSON.stringify(outcome) + '\n', () => process.exit(0))
}

function failed(error, more = {}) {
  return { connected: false, reason: error.code ?? null, error: error.message, ...more }
}

// Connects: by SCRAM where options.method is set, else with a plain password (none where it is null).
// Resolves to { client, connack, scram }; rejects with MQTT.js's error, whose `code` is the reason code.
function connect(options) {
  const scram = options.method ? new Scram(options.method, options.username, options.password) : null
  const properties = scram
    ? { authenticationMethod: options.method, authenticationData: Buffer.from(scram.clientFirst()) }
    : undefined
  const client = mqtt.connect({
    host: options.host,
    port: options.port,
    protocol: options.protocol, // ws or wss: over WebSocket, at `path`
    path: options.path,
    ca: options.ca,
    clientId: options.clientId,
    username: options.username ?? undefined,
    password: scram ? undefined : (options.password ?? undefined),
    protocolVersion: options.protocolVersion,
    clean: options.clean,
    keepalive: options.keepalive,
    reconnectPeriod: 0,
    connectTimeout: DEADLINE_MS,
    properties: options.protocolVersion === 5 ? { ...properties, ...options.properties } : undefined,
  })
  if (scram) client.handleAuth = answerAuth(options.method, scram)
  return new Promise((resolve, reject) => {
    client.once('connect', (connack) => {
      try {
        if (scram) scram.verify(String(connack.properties?.authenticationData ?? ''))
        resolve({ client, connack, scram })
      } catch (error) {
        reject(error)
      }
    })
    client.once('error', reject)
    client.once('close', () => reject(new Error('closed before CONNACK')))
    setTimeout(() => reject(new Error('no CONNACK in time')), DEADLINE_MS).unref()
  })
}

function answerAuth(method, scram) {
  return (packet, callback) => {
    try {
      const data = scram.clientFinal(String(packet.properties.authenticationData))
      callback(null, {
        cmd: 'auth',
        reasonCode: 24,
        properties: { authenticationMethod: method, authenticationData: Buffer.from(data) },
      })
    } catch (error) {
      callback(error)
    }
  }
}

// Proves the password once more on a live connection [MQTT-4.12.1]; resolves to whether the server proved itself too.
function reauthenticate(client, options) {
  const scram = new Scram(options.method, options.username, options.password)
  return new Promise((resolve, reject) => {
    const proceed = answerAuth(options.method, scram)
    client.handleAuth = (packet, callback) => {
      if (packet.reasonCode !== 0) return proceed(packet, callback)
      callback(null)
      try {
        scram.verify(String(packet.properties?.authenticationData ?? ''))
        resolve(true)
      } catch (error) {
        reject(error)
      }
    }
    client.once('disconnect', (packet) => reject(Object.assign(new Error('disconnected'), { code: packet.reasonCode })))
    client._sendPacket({
      cmd: 'auth',
      reasonCode: 25,
      properties: { authenticationMethod: options.method, authenticationData: Buffer.from(scram.clientFirst()) },
    })
    setTimeout(() => reject(new Error('no AUTH in time')), DEADLINE_MS).unref()
  })
}

function welcomed(connack) {
  const version5 = connack.reasonCode !== undefined
  return {
    connected: true,
    reason: version5 ? connack.reasonCode : connack.returnCode,
    sessionPresent: connack.sessionPresent,
    serverKeepAlive: connack.properties?.serverKeepAlive ?? null,
    sessionExpiry: connack.properties?.sessionExpiryInterval ?? null,
  }
}

module.exports = { DEADLINE_MS, connect, failed, finish, readOptions, reauthenticate, welcomed }
