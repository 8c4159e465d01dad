// Delays made of a queue's or a message's time to live and a dead-letter exchange.
import { death, deaths } from './stage.js';

// Each close command waits as long as its own expiration says; what is paid meanwhile stays open.
export async function orderClose(stage) {
  const waitExchange = await stage.exchange('wait.ex', 'direct');
  const closeExchange = await stage.exchange('close.ex', 'direct');
  const waitQueue = await stage.queue('wait.q', {
    deadLetterExchange: closeExchange,
    deadLetterRoutingKey: 'order.close',
  });
  const closeQueue = await stage.queue('close.q');
  await stage.bind(waitQueue, waitExchange, 'order.wait');
  await stage.bind(closeQueue, closeExchange, 'order.close');

  const orders = new Map();
  const due = new Map();
  for (const delay of [300, 600, 900, 1200]) {
    const number = `ORDER-${delay}`;
    orders.set(number, 'WAITING');
    due.set(number, Date.now() + delay);
    await stage.publish(waitExchange, 'order.wait', JSON.stringify({ number }), {
      expiration: delay,
      contentType: 'application/json',
      messageId: number,
      headers: { shop: 'north' },
    });
  }
  orders.set('ORDER-600', 'PAID');

  const inbox = await stage.consume(closeQueue);
  for (const number of due.keys()) {
    const letter = await inbox.take();
    stage.equal(letter.body, JSON.stringify({ number }), 'order of expiry');
    stage.onTime(number, due.get(number), letter.arrived);
    stage.equal(letter.key, 'order.close', 'routing key');
    stage.equal(letter.exchange, closeExchange, 'exchange');
    stage.equal(letter.properties.expiration, undefined, 'expiration after dead-lettering');
    stage.equal(letter.properties.messageId, number, 'message id');
    stage.equal(letter.headers.shop, 'north', 'own header');
    stage.equal(deaths(letter), [death(waitQueue, 'expired', 1, waitExchange, 'order.wait')], 'x-death');
    stage.equal(letter.headers['x-death'][0]['original-expiration'], number.slice(6), 'original expiration');
    if (orders.get(number) === 'WAITING') orders.set(number, 'CLOSED');
  }
  stage.equal([...orders.values()], ['CLOSED', 'PAID', 'CLOSED', 'CLOSED'], 'orders');
  await inbox.nothing(200, 'a close command came twice');
  stage.equal(await stage.ready(waitQueue), 0, 'messages left waiting');
}

// The queue's TTL, unless the message's own is lower.
export async function queueTTL(stage) {
  const ttl = 1000;
  const delay = await stage.exchange('delay.exchange', 'direct');
  const dead = await stage.exchange('dead.letter.exchange', 'direct');
  const options = { messageTtl: ttl, deadLetterExchange: dead, deadLetterRoutingKey: 'dead.key' };
  const waiting = await stage.queue('delay.queue', options);
  const work = await stage.queue('actual.queue');
  await stage.bind(waiting, delay, 'delay.key');
  await stage.bind(work, dead, 'dead.key');

  const sent = [
    ['lower', 400, 400],
    ['none', undefined, ttl],
    ['higher', 60_000, ttl],
  ];
  const due = new Map();
  for (const [body, expiration, ms] of sent) {
    due.set(body, Date.now() + ms);
    await stage.publish(delay, 'delay.key', body, { expiration });
  }
  const inbox = await stage.consume(work);
  for (const [body] of sent) {
    const letter = await inbox.take();
    stage.equal(letter.body, body, 'order of expiry');
    stage.onTime(body, due.get(body), letter.arrived);
    stage.equal(letter.key, 'dead.key', 'routing key');
    stage.equal(deaths(letter), [death(waiting, 'expired', 1, delay, 'delay.key')], 'x-death');
  }
  await stage.refused(406, 'declare with another TTL', (channel) =>
    channel.assertQueue(waiting, { ...options, messageTtl: 2 * ttl }),
  );
}

// One waiting queue for each delay on offer.
export async function tiers(stage) {
  const work = await stage.queue('work');
  // The client picks the smallest integer type that fits: byte, short, short.
  const ttl = { short: 120, middle: 700, long: 1300 };
  for (const [name, messageTtl] of Object.entries(ttl)) {
    await stage.queue(name, { messageTtl, deadLetterExchange: '', deadLetterRoutingKey: work });
  }
  const due = new Map();
  for (let round = 0; round < 3; round++) {
    for (const name of ['long', 'middle', 'short']) {
      due.set(`${name} ${round}`, Date.now() + ttl[name]);
      await stage.publish('', stage.name(name), `${name} ${round}`);
    }
  }
  const inbox = await stage.consume(work);
  const next = { short: 0, middle: 0, long: 0 };
  for (let i = 0; i < due.size; i++) {
    const letter = await inbox.take();
    stage.onTime(letter.body, due.get(letter.body), letter.arrived);
    const [name, round] = letter.body.split(' ');
    stage.equal(Number(round), next[name]++, `order within tier ${name}`);
    stage.equal(deaths(letter)[0].queue, stage.name(name), 'tier that it waited in');
  }
}

// A long delay in front of short ones in one queue. On RabbitMQ the short ones wait for the long
// one; here they must not.
export async function headOfLine(stage) {
  const long = 5000;
  const work = await stage.queue('work');
  const waiting = await stage.queue('wait', { deadLetterExchange: '', deadLetterRoutingKey: work });
  const due = new Map();
  for (const delay of [long, 900, 300, 600]) {
    due.set(delay, Date.now() + delay);
    await stage.publish('', waiting, String(delay), { expiration: String(delay) });
  }
  const inbox = await stage.consume(work);
  for (const delay of [300, 600, 900, long]) {
    const letter = await inbox.take();
    stage.equal(letter.body, String(delay), 'order of expiry');
    stage.onTime(`${delay} ms`, due.get(delay), letter.arrived);
    stage.check(delay === long || letter.arrived < due.get(long), `${delay} ms waited for the head`);
  }
}
