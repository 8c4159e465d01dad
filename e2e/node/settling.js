// Acks, rejections, retries, confirms and returns.
import { death, deaths } from './stage.js';

// What failed is put back and comes again, marked; prefetch holds back the rest; what a closed
// channel leaves goes to the next one.
export async function manualAck(stage) {
  const queue = await stage.queue('work');
  await stage.publish('', queue, 'flaky');
  const inbox = await stage.consume(queue, 2);
  for (let attempt = 0; attempt < 3; attempt++) {
    const letter = await inbox.next();
    stage.equal(letter.redelivered, attempt > 0, `redelivered at attempt ${attempt}`);
    stage.equal(letter.headers['x-death'], undefined, 'x-death after a requeue');
    if (attempt === 0) inbox.channel.nack(letter.message, false, true);
    else if (attempt === 1) inbox.channel.reject(letter.message, true);
    else inbox.channel.ack(letter.message);
  }
  for (let i = 0; i < 5; i++) await stage.publish('', queue, String(i));
  await inbox.next();
  const second = await inbox.next();
  await inbox.nothing(300, 'a third message despite a prefetch of two');
  inbox.channel.ack(second.message, true);
  await inbox.next();
  await inbox.next();
  await inbox.channel.close();
  const again = await stage.consume(queue);
  for (const [body, redelivered] of [['2', true], ['3', true], ['4', false]]) {
    const letter = await again.take();
    stage.equal(letter.body, body, 'message left by the closed channel');
    stage.equal(letter.redelivered, redelivered, `redelivered flag of ${body}`);
  }
  await again.nothing(200, 'an acknowledged message came back');
}

// What is refused for good goes to the dead-letter exchange with its reason.
export async function rejects(stage) {
  const business = await stage.exchange('business', 'topic');
  const dlx = await stage.exchange('dlx', 'fanout');
  const queue = await stage.queue('work', { deadLetterExchange: dlx });
  const dead = await stage.queue('dead');
  await stage.bind(queue, business, 'order.#');
  await stage.bind(dead, dlx, '');
  await stage.publish(business, 'order.new', 'reject', { headers: { n: 1 } });
  await stage.publish(business, 'order.old', 'nack', { headers: { n: 1 } });
  const inbox = await stage.consume(queue);
  inbox.channel.reject((await inbox.next()).message, false);
  inbox.channel.nack((await inbox.next()).message, false, false);
  const out = await stage.consume(dead);
  for (const [body, key] of [['reject', 'order.new'], ['nack', 'order.old']]) {
    const letter = await out.take();
    stage.equal(letter.body, body, 'dead letter');
    stage.equal(letter.key, key, 'routing key');
    stage.equal(letter.headers.n, 1, 'own header');
    stage.equal(deaths(letter), [death(queue, 'rejected', 1, business, key)], 'x-death');
    stage.equal(letter.headers['x-first-death-reason'], 'rejected', 'first death reason');
  }
}

// A rejected message rests in a waiting queue that dead-letters it back.
export async function delayedRetry(stage) {
  const pause = 300;
  const work = stage.name('work');
  const waiting = stage.name('pause');
  await stage.queue('work', { deadLetterExchange: '', deadLetterRoutingKey: waiting });
  await stage.queue('pause', { messageTtl: pause, deadLetterExchange: '', deadLetterRoutingKey: work });
  await stage.publish('', work, 'flaky');
  const inbox = await stage.consume(work);
  let due;
  for (let attempt = 0; attempt < 4; attempt++) {
    const letter = await inbox.next();
    const want = [death(waiting, 'expired', attempt, '', waiting), death(work, 'rejected', attempt, '', work)];
    stage.equal(deaths(letter), attempt === 0 ? [] : want, `x-death at attempt ${attempt}`);
    if (attempt > 0) stage.onTime(`attempt ${attempt}`, due, letter.arrived);
    if (attempt === 3) {
      inbox.channel.ack(letter.message);
      break;
    }
    due = Date.now() + pause;
    inbox.channel.reject(letter.message, false);
  }
  await inbox.nothing(2 * pause, 'an acknowledged message came again');
}

// Many confirms at once, then one at a time.
export async function confirms(stage) {
  const many = 1000;
  const queue = await stage.queue('work');
  const open = [];
  for (let i = 0; i < many; i++) open.push(stage.publish('', queue, String(i)));
  await Promise.all(open);
  stage.equal(await stage.ready(queue), many, 'messages in the queue when all are confirmed');
  for (let i = 0; i < 20; i++) await stage.publish('', queue, 'single');
  await stage.publish('', stage.name('nowhere'), 'unroutable');
  await stage.channel.waitForConfirms();
  const inbox = await stage.consume(queue, 100);
  for (let i = 0; i < many; i++) stage.equal((await inbox.take()).body, String(i), 'order');
}

// Mandatory messages without a queue come back, before their confirms.
export async function returns(stage) {
  const exchange = await stage.exchange('orders', 'direct');
  const queue = await stage.queue('work');
  await stage.bind(queue, exchange, 'known');
  const events = [];
  stage.channel.on('return', (message) => events.push(message));
  for (const [key, mandatory, back] of [['unknown', true, 1], ['unknown', false, 0], ['known', true, 0]]) {
    await stage.publish(exchange, key, 'body', { mandatory, correlationId: 'c-1', headers: { big: 2 ** 40 } });
    stage.equal(events.length, back, `returns of ${key}, mandatory ${mandatory}, when it is confirmed`);
    for (const message of events.splice(0)) {
      stage.equal(message.fields.replyCode, 312, 'reply code');
      stage.equal(message.fields.replyText, 'NO_ROUTE', 'reply text');
      stage.equal(message.fields.exchange, exchange, 'exchange');
      stage.equal(message.fields.routingKey, 'unknown', 'routing key');
      stage.equal(message.content.toString(), 'body', 'body');
      stage.equal(message.properties.correlationId, 'c-1', 'correlation id');
      stage.equal(message.properties.headers.big, 2 ** 40, 'header');
    }
  }
  stage.equal(await stage.ready(queue), 1, 'messages in the queue');
  await stage.refused(404, 'publish to an unknown exchange', (channel) =>
    channel.publish(stage.name('nowhere'), '', Buffer.from('lost')),
  );
}
