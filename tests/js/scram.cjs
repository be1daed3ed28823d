// The client's side of SCRAM (RFC 5802, RFC 7677), written from the RFCs on node's crypto only.
'use strict'

const crypto = require('crypto')

const DIGESTS = { 'SCRAM-SHA-1': 'sha1', 'SCRAM-SHA-256': 'sha256' }

class Scram {
  constructor(method, username, password, nonce = crypto.randomBytes(18).toString('base64')) {
    if (!(method in DIGESTS)) throw new Error(`unknown method ${method}`)
    this.digest = DIGESTS[method]
    this.password = password
    this.nonce = nonce
    const name = username.replace(/=/g, '=3D').replace(/,/g, '=2C')
    this.firstBare = `n=${name},r=${nonce}`
  }

  clientFirst() {
    return `n,,${this.firstBare}`
  }

  clientFinal(serverFirst) {
    const fields = parse(serverFirst)
    if (!fields.r || !fields.r.startsWith(this.nonce) || fields.r === this.nonce) throw new Error('bad server nonce')
    const length = crypto.createHash(this.digest).digest().length
    const salt = Buffer.from(fields.s, 'base64')
    const salted = crypto.pbkdf2Sync(this.password, salt, Number(fields.i), length, this.digest)
    const withoutProof = `c=biws,r=${fields.r}`
    const message = `${this.firstBare},${serverFirst},${withoutProof}`
    const clientKey = this.hmac(salted, 'Client Key')
    const storedKey = crypto.createHash(this.digest).update(clientKey).digest()
    const signature = this.hmac(storedKey, message)
    const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]))
    this.serverSignature = this.hmac(this.hmac(salted, 'Server Key'), message).toString('base64')
    return `${withoutProof},p=${proof.toString('base64')}`
  }

  verify(serverFinal) {
    if (!this.serverSignature || parse(serverFinal).v !== this.serverSignature) throw new Error('bad server signature')
  }

  hmac(key, text) {
    return crypto.createHmac(this.digest, key).update(text).digest()
  }
}

function parse(message) {
  return Object.fromEntries(message.split(',').map((field) => [field[0], field.slice(2)]))
}

module.exports = { Scram }
