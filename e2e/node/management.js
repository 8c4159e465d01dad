// Sets up an application over the management API at DUEPOST_E2E_API, uses it, copies it by its
// definitions, closes a client that is connected to DUEPOST_E2E_URL, and takes everything away.
import assert from 'node:assert/strict';
import amqplib from 'amqplib';

const api = process.env.DUEPOST_E2E_API;
const login = `Basic ${Buffer.from('guest:guest').toString('base64')}`;

// ask fails unless the answer has the status; it returns the JSON, if there is any.
async function ask(status, method, path, body) {
  const response = await fetch(`${api}/api/${path.map(encodeURIComponent).join('/')}`, {
    method,
    headers: { authorization: login, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, status, `${method} ${path.join(' ')}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

const vhost = 'depot/1';
const all = { configure: '.*', write: '.*', read: '.*' };
await ask(201, 'PUT', ['vhosts', vhost], {});
await ask(201, 'PUT', ['users', 'picker'], { password: 'p', tags: 'monitoring' });
await ask(201, 'PUT', ['permissions', vhost, 'picker'], all);
await ask(204, 'PUT', ['permissions', vhost, 'guest'], all); // who makes a virtual host may use it
await ask(201, 'PUT', ['policies', vhost, 'short'], { pattern: '^jobs$', definition: { 'message-ttl': 60000 }, 'apply-to': 'queues' });
await ask(201, 'PUT', ['exchanges', vhost, 'x'], { type: 'headers' });
await ask(201, 'PUT', ['queues', vhost, 'jobs'], { durable: true });
await ask(201, 'POST', ['bindings', vhost, 'e', 'x', 'q', 'jobs'], { arguments: { kind: 'job', 'x-match': 'all' } });
await ask(204, 'PUT', ['user-limits', 'picker', 'max-connections'], { value: 1 });

const message = { properties: { headers: { kind: 'job' }, message_id: '1' }, routing_key: '', payload: 'ÄÖ', payload_encoding: 'string' };
assert.deepEqual(await ask(200, 'POST', ['exchanges', vhost, 'x', 'publish'], message), { routed: true });
const other = { ...message, properties: {} };
assert.deepEqual(await ask(200, 'POST', ['exchanges', vhost, 'x', 'publish'], other), { routed: false });
const look = { count: 2, ackmode: 'ack_requeue_true', encoding: 'auto' };
const seen = await ask(200, 'POST', ['queues', vhost, 'jobs', 'get'], look);
assert.equal(seen.length, 1);
assert.equal(seen[0].payload, 'ÄÖ');
assert.equal(seen[0].payload_bytes, 4);
assert.deepEqual(seen[0].properties, { headers: { kind: 'job' }, message_id: '1' });

const file = await ask(200, 'GET', ['definitions', vhost]);
await ask(201, 'PUT', ['vhosts', 'copy'], {});
await ask(204, 'POST', ['definitions', 'copy'], file);
const copy = await ask(200, 'GET', ['definitions', 'copy']);
const named = JSON.parse(JSON.stringify(file).replaceAll(JSON.stringify(vhost), '"copy"'));
assert.deepEqual(copy, named);

const url = process.env.DUEPOST_E2E_URL.replace('guest:guest', 'picker:p');
const connection = await amqplib.connect(`${url}/${encodeURIComponent(vhost)}`);
await assert.rejects(amqplib.connect(`${url}/${encodeURIComponent(vhost)}`), /ConnectionClose/);
const ended = new Promise((resolve) => connection.on('close', resolve));
connection.on('error', () => {}); // told by close as well
const channel = await connection.createChannel();
channel.on('error', () => {});
const got = await channel.get('jobs', { noAck: true });
assert.equal(got.content.toString(), 'ÄÖ');
assert.equal(got.fields.redelivered, true);
const connections = await ask(200, 'GET', ['connections']);
const mine = connections.find((c) => c.user === 'picker');
await ask(204, 'DELETE', ['connections', mine.name]);
await ended;

await ask(204, 'DELETE', ['vhosts', 'copy']);
await ask(204, 'DELETE', ['vhosts', vhost]);
await ask(204, 'DELETE', ['users', 'picker']);
console.log('round done');
