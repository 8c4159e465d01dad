// A connection, names that no other run uses, and the checks.
import { isDeepStrictEqual, inspect } from 'node:util';
import { randomBytes } from 'node:crypto';
import amqp from 'amqplib';
import { Inbox } from './inbox.js';

const url = process.env.DUEPOST_E2E_URL ?? 'amqp://guest:guest@127.0.0.1:5672';
const slack = Number(process.env.DUEPOST_E2E_SLACK_MS ?? 3000);

export class Stage {
  static async open(scheme) {
    const stage = new Stage();
    stage.prefix = `node.${scheme}.${randomBytes(4).toString('hex')}.`;
    stage.undo = [];
    stage.checks = 0;
    stage.connection = await amqp.connect(url);
    // Declarations and publishing; consumers use channels of their own.
    stage.channel = await stage.connection.createConfirmChannel();
    return stage;
  }

  // Deletes what was declared and disconnects.
  async close() {
    const channel = await this.connection.createChannel();
    for (const undo of this.undo) await undo(channel);
    await this.connection.close();
  }

  name(suffix) {
    return this.prefix + suffix;
  }

  // Declares a durable exchange and returns its full name.
  async exchange(suffix, type, args = {}) {
    const name = this.name(suffix);
    await this.channel.assertExchange(name, type, { durable: true, arguments: args });
    this.undo.push((channel) => channel.deleteExchange(name));
    return name;
  }

  // Declares a durable queue and returns its full name.
  async queue(suffix, options = {}) {
    const name = this.name(suffix);
    await this.channel.assertQueue(name, { durable: true, ...options });
    this.undo.push((channel) => channel.deleteQueue(name));
    return name;
  }

  async bind(queue, exchange, key) {
    await this.channel.bindQueue(queue, exchange, key);
  }

  async ready(queue) {
    return (await this.channel.checkQueue(queue)).messageCount;
  }

  // Publishes a persistent message and resolves when it is confirmed.
  publish(exchange, key, body, options = {}) {
    return new Promise((resolve, reject) => {
      this.channel.publish(exchange, key, Buffer.from(body), { persistent: true, ...options }, (fault) =>
        fault ? reject(new Error(`publish to ${exchange} was nacked: ${fault}`)) : resolve(),
      );
    });
  }

  async consume(queue, prefetch = 0) {
    return Inbox.open(this, await this.connection.createChannel(), queue, prefetch);
  }

  check(holds, claim) {
    this.checks++;
    if (!holds) throw new Error(claim);
  }

  equal(got, want, what) {
    this.check(isDeepStrictEqual(got, want), `${what}: got ${inspect(got)}, want ${inspect(want)}`);
  }

  // Never early, and late by no more than a busy machine explains. Instants in Unix ms.
  onTime(what, due, arrived) {
    console.log(`${what}: ${arrived - due} ms after due`);
    this.check(arrived >= due, `${what} came ${due - arrived} ms early`);
    this.check(arrived <= due + slack, `${what} came ${arrived - due} ms late`);
  }

  // Runs an action that the broker must answer by closing the channel.
  async refused(code, what, act) {
    const channel = await this.connection.createChannel();
    const closed = new Promise((resolve) => {
      channel.on('error', resolve);
    });
    // A refused call rejects too; what counts is the reason of the close.
    Promise.resolve(act(channel)).catch(() => {});
    const fault = await Promise.race([closed, wait(30_000)]);
    this.check(fault !== undefined, `${what} was not refused`);
    this.equal(fault.code, code, `${what} (${fault.message})`);
  }
}

export function wait(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

// The entries of x-death, newest first, each reduced to what is checked.
export function deaths(letter) {
  return (letter.headers['x-death'] ?? []).map((entry) => ({
    queue: entry.queue,
    reason: entry.reason,
    count: entry.count,
    exchange: entry.exchange,
    keys: entry['routing-keys'].join(),
    dated: entry.time['!'] === 'timestamp',
  }));
}

export function death(queue, reason, count, exchange, keys) {
  return { queue, reason, count, exchange, keys, dated: true };
}
