// Logs in and out again: by SCRAM where `method` is given, else with user name and password, MQTT 5.0 or 3.1.1.
// Options: port, clientId, username, password, method, protocolVersion (4 or 5), reauthenticate.
// Outcome: {connected, reason, sessionPresent, serverKeepAlive, sessionExpiry, serverVerified, reauthenticated}
//       or {connected: false, reason, error}.
'use strict'

const { connect, failed, finish, readOptions, reauthenticate, welcomed } = require('./session.cjs')

async function main() {
  const options = readOptions()
  const { client, connack, scram } = await connect(options)
  const outcome = { ...welcomed(connack), serverVerified: scram !== null, reauthenticated: null }
  if (options.reauthenticate) outcome.reauthenticated = await reauthenticate(client, options)
  await client.endAsync()
  return outcome
}

main().catch((error) => failed(error)).then(finish)
