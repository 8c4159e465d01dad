// The exchange that keeps each message until it is due.

// Mixed delays, the longest first: each comes at its own time, its delay negated, nothing else
// changed.
export async function exchange(stage) {
  const name = await stage.exchange('delay', 'x-delayed-message', { 'x-delayed-type': 'direct' });
  const queue = await stage.queue('work');
  await stage.bind(queue, name, 'close');
  let returned = 0;
  stage.channel.on('return', () => returned++);

  const due = new Map();
  for (const delay of [2500, 300, 1200, 600, 301]) {
    due.set(delay, Date.now() + delay);
    await stage.publish(name, 'close', String(delay), {
      mandatory: true,
      headers: { 'x-delay': delay, shop: 'north' },
      correlationId: `c-${delay}`,
    });
  }
  stage.equal(await stage.ready(queue), 0, 'messages in the queue before they are due');
  stage.equal(returned, 0, 'returned messages');

  const inbox = await stage.consume(queue);
  for (const delay of [300, 301, 600, 1200, 2500]) {
    const letter = await inbox.take();
    stage.equal(letter.body, String(delay), 'order of release');
    stage.onTime(`${delay} ms`, due.get(delay), letter.arrived);
    const { 'x-duepost-id': _, ...headers } = letter.headers; // which a relay adds
    stage.equal(headers, { 'x-delay': -delay, shop: 'north' }, 'headers');
    stage.equal(letter.properties.correlationId, `c-${delay}`, 'correlation id');
    stage.equal(letter.properties.deliveryMode, 2, 'delivery mode');
    stage.equal(letter.exchange, name, 'exchange');
    stage.equal(letter.key, 'close', 'routing key');
  }
  for (const headers of [{}, { 'x-delay': 0 }, { 'x-delay': -9000 }]) {
    const now = Date.now();
    await stage.publish(name, 'close', 'at once', { headers });
    const letter = await inbox.take();
    stage.onTime(`headers ${JSON.stringify(headers)}`, now, letter.arrived);
    stage.equal({ ...letter.headers }, headers, 'headers that ask for no delay');
  }
}

// The client chooses the type by the number's size; some can be asked for by name.
export async function types(stage) {
  const name = await stage.exchange('delay', 'x-delayed-message', { 'x-delayed-type': 'topic' });
  const queue = await stage.queue('work');
  await stage.bind(queue, name, '#');
  const sent = {
    byte: [100, 100],
    short: [300, 300],
    string: ['400', 400],
    double: [500.75, 500],
    float: [{ '!': 'float', value: 600 }, 600],
    int: [{ '!': 'int', value: 700 }, 700],
    long: [{ '!': 'long', value: 800 }, 800],
  };
  // 49.7 days and a little: a broker that keeps 32 bits would release it at once.
  await stage.publish(name, 'later', 'later', { headers: { 'x-delay': 2 ** 32 + 500 } });
  const due = new Map();
  for (const [type, [value, ms]] of Object.entries(sent)) {
    due.set(type, Date.now() + ms);
    await stage.publish(name, type, type, { headers: { 'x-delay': value } });
  }
  const inbox = await stage.consume(queue);
  for (let i = 0; i < due.size; i++) {
    const letter = await inbox.take();
    stage.onTime(letter.body, due.get(letter.body), letter.arrived);
    stage.equal(letter.headers['x-delay'], -sent[letter.body][1], `x-delay sent as ${letter.body}`);
  }
  await inbox.nothing(1000, 'a delay beyond 32 bits ended at once');
  for (const value of ['soon', true, null, [1], { ms: 1 }, { '!': 'timestamp', value: 1000 }]) {
    await stage.refused(406, `x-delay ${JSON.stringify(value)}`, (channel) =>
      channel.publish(name, 'x', Buffer.from('x'), { headers: { 'x-delay': value } }),
    );
  }
}

// Checks with doubling delays until a deadline; the state travels in the message.
export async function staircase(stage) {
  const deadline = 1700;
  const name = await stage.exchange('delay', 'x-delayed-message', { 'x-delayed-type': 'direct' });
  const queue = await stage.queue('check');
  await stage.bind(queue, name, 'check');
  const send = (check) =>
    stage.publish(name, 'check', JSON.stringify({ ...check, sent: Date.now() }), {
      headers: { 'x-delay': check.step },
    });

  const inbox = await stage.consume(queue);
  const steps = { paid: [], unpaid: [] };
  for (const order of ['paid', 'unpaid']) await send({ order, created: Date.now(), step: 200 });
  for (let open = 2; open > 0; ) {
    const letter = await inbox.next();
    const check = JSON.parse(letter.body);
    steps[check.order].push(check.step);
    stage.onTime(`${check.order} after ${check.step} ms`, check.sent + check.step, letter.arrived);
    const left = check.created + deadline - letter.arrived;
    if (check.order === 'paid' && steps.paid.length === 2) {
      open--; // paid between the first check and the second
    } else if (left <= 0) {
      stage.onTime('deadline', check.created + deadline, letter.arrived);
      stage.equal(check.order, 'unpaid', 'order that reached its deadline');
      open--;
    } else {
      await send({ ...check, step: Math.min(2 * check.step, left) });
    }
    inbox.channel.ack(letter.message);
  }
  console.log(steps);
  stage.check(steps.unpaid.length >= 3, `too few steps: ${steps.unpaid}`);
  for (let i = 1; i < steps.unpaid.length - 1; i++) {
    stage.equal(steps.unpaid[i], 2 * steps.unpaid[i - 1], `step ${i} of ${steps.unpaid}`);
  }
  await inbox.nothing(500, 'a check came after the end');
}
