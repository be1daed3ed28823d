// The exchanges printed in RFC 5802 (SHA-1) and RFC 7677 (SHA-256), for a test of scram.cjs itself.
'use strict'

const { Scram } = require('./scram.cjs')
const { finish, readOptions } = require('./session.cjs')

const options = readOptions()
const scram = new Scram(options.method, 'user', 'pencil', options.nonce)
const first = scram.clientFirst()
const final = scram.clientFinal(options.serverFirst)
let verified = true
try {
  scram.verify(options.serverFinal)
} catch {
  verified = false
}
finish({ first, final, verified })
