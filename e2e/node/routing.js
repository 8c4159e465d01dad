// Which queues does a key reach?
export async function routing(stage) {
  const a = await stage.queue('a');
  const b = await stage.queue('b');

  const fanout = await stage.exchange('fanout', 'fanout');
  await stage.bind(a, fanout, 'ignored');
  await stage.bind(b, fanout, '');
  await reaches(stage, { a, b }, fanout, { '': 'a b', anything: 'a b' });

  const direct = await stage.exchange('direct', 'direct');
  await stage.bind(a, direct, 'info');
  await stage.bind(a, direct, 'error');
  await stage.bind(b, direct, 'error');
  await reaches(stage, { a, b }, direct, { info: 'a', error: 'a b', Error: '', 'error.x': '' });

  const topic = await stage.exchange('topic', 'topic');
  await stage.bind(a, topic, '*.orange.*');
  await stage.bind(b, topic, '*.*.rabbit');
  await stage.bind(b, topic, 'lazy.#');
  await reaches(stage, { a, b }, topic, {
    'quick.orange.rabbit': 'a b',
    'quick.orange.fox': 'a',
    'lazy.pink.rabbit': 'b',
    lazy: 'b',
    'lazy.one.two.three': 'b',
    orange: '',
    'quick.orange.new.rabbit': '',
    'quick.brown.fox': '',
  });
}

async function reaches(stage, queues, exchange, expected) {
  for (const [key, want] of Object.entries(expected)) {
    await stage.publish(exchange, key, key);
    const got = [];
    for (const [name, queue] of Object.entries(queues)) {
      for (let m = await stage.channel.get(queue, { noAck: true }); m; ) {
        stage.equal(m.content.toString(), key, 'body');
        got.push(name);
        m = await stage.channel.get(queue, { noAck: true });
      }
    }
    stage.equal(got.join(' '), want, `queues that key "${key}" reaches`);
  }
}
