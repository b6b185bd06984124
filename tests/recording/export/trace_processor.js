// Asks Perfetto's own trace processor (WebAssembly, as its UI has it) about a trace, offline.
// usage: node trace_processor.js UI_FOLDER TRACE SQL...      prints for each query a line: a JSON array of rows
'use strict';
const fs = require('fs');
const path = require('path');
const [folder, trace, ...queries] = process.argv.slice(2);

// its bridge is a worker of a browser
globalThis.self = globalThis.WorkerGlobalScope = globalThis;
globalThis.location = { href: 'http://localhost/' };
process.type = 'renderer';
globalThis.XMLHttpRequest = class {
  open(_, url) { this.url = url; }
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
};
console.log = console.warn = (...words) => process.stderr.write(words.join(' ') + '\n');

// protobuf, as far as it is needed
const varint = number => {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
};
const field = (tag, bytes) => Buffer.concat([varint(tag * 8 + 2), varint(bytes.length), bytes]);
const request = (method, more = Buffer.alloc(0)) =>
  field(1, Buffer.concat([varint(1 * 8), varint(++sequence), varint(2 * 8), varint(method), more]));
let sequence = 0;
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let value = 0n, shift = 0n;
    for (; bytes[at] & 128; at++, shift += 7n) value |= BigInt(bytes[at] & 127) << shift;
    return value | (BigInt(bytes[at++]) << shift);
  };
  while (at < bytes.length) {
    const key = Number(number()), kind = key & 7;
    if (kind === 0) yield [key >> 3, number()];
    else if (kind === 1) yield [key >> 3, bytes.subarray(at, at += 8)];
    else { const size = Number(number()); yield [key >> 3, bytes.subarray(at, at += size)]; }
  }
}
const numbers = bytes => {
  const found = [];
  for (let at = 0; at < bytes.length; at++) {
    let value = 0n, shift = 0n;
    for (; bytes[at] & 128; at++, shift += 7n) value |= BigInt(bytes[at] & 127) << shift;
    found.push(Number(BigInt.asIntN(64, value | (BigInt(bytes[at]) << shift))));
  }
  return found;
};

const [APPEND, FINALIZE, QUERY] = [1, 2, 3];
const PIECE = 16 << 20;
const answers = queries.map(() => ({ names: [], rows: [], row: [] }));
let asked = -1;

// a batch of QueryResult: kinds of cells, then the cells of each kind
function batch(bytes, answer) {
  const cells = { kinds: [], 2: [], 3: [], 5: [] };
  for (const [tag, value] of fields(bytes)) {
    if (tag === 1) cells.kinds.push(...numbers(value));
    else if (tag === 2) cells[2].push(...numbers(value));
    else if (tag === 3) for (let at = 0; at < value.length; at += 8) cells[3].push(Buffer.from(value).readDoubleLE(at));
    else if (tag === 5) cells[5].push(...Buffer.from(value).toString('utf8').split('\0').slice(0, -1));
  }
  for (const kind of cells.kinds) {
    answer.row.push(kind === 1 ? null : cells[{ 2: 2, 3: 3, 4: 5 }[kind]].shift());
    if (answer.row.length === answer.names.length) answer.rows.push(answer.row.splice(0));
  }
}
function take(message) {
  for (const [, rpc] of fields(message)) {
    for (const [tag, value] of fields(rpc)) {
      if (tag === 5) throw new Error(Buffer.from(value).toString());
      if (tag === 201) for (const [inner, text] of fields(value)) if (inner === 2) throw new Error(Buffer.from(text).toString());
      if (tag !== 203) continue;
      const answer = answers[asked];
      for (const [inner, found] of fields(value)) {
        if (inner === 1) answer.names.push(Buffer.from(found).toString());
        else if (inner === 2 && found.length) throw new Error(queries[asked] + ': ' + Buffer.from(found).toString());
        else if (inner === 3) batch(found, answer);
      }
    }
  }
}

eval(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));
const port = { postMessage: take };
self.onmessage({ data: port });
(async () => {
  const send = async bytes => { await port.onmessage({ data: new Uint8Array(bytes) }); };
  await new Promise(ready => setTimeout(ready));
  const bytes = fs.readFileSync(trace);
  for (let at = 0; at < bytes.length; at += PIECE) await send(request(APPEND, field(101, bytes.subarray(at, at + PIECE))));
  await send(request(FINALIZE));
  for (asked = 0; asked < queries.length; asked++) {
    await send(request(QUERY, field(103, field(1, Buffer.from(queries[asked])))));
    process.stdout.write(JSON.stringify(answers[asked].rows) + '\n');
  }
})().catch(error => { process.stderr.write(error.stack + '\n'); process.exit(1); });
