// A consumer with manual acks that notes when each message came.
const patience = 30_000;

export class Inbox {
  static async open(stage, channel, queue, prefetch) {
    const inbox = new Inbox();
    inbox.stage = stage;
    inbox.channel = channel;
    inbox.letters = [];
    inbox.waiting = [];
    await channel.prefetch(prefetch);
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message !== null) inbox.put(message);
    });
    inbox.tag = consumerTag;
    return inbox;
  }

  put(message) {
    const letter = {
      message,
      arrived: Date.now(),
      body: message.content.toString(),
      headers: message.properties.headers ?? {},
      properties: message.properties,
      key: message.fields.routingKey,
      exchange: message.fields.exchange,
      redelivered: message.fields.redelivered,
    };
    const taker = this.waiting.shift();
    if (taker) taker(letter);
    else this.letters.push(letter);
  }

  // The next message, not yet settled, or undefined when none comes in time.
  within(ms) {
    if (this.letters.length > 0) return Promise.resolve(this.letters.shift());
    return new Promise((resolve) => {
      const taker = (letter) => {
        clearTimeout(timer);
        resolve(letter);
      };
      const timer = setTimeout(() => {
        this.waiting = this.waiting.filter((other) => other !== taker);
        resolve(undefined);
      }, ms);
      this.waiting.push(taker);
    });
  }

  async next() {
    const letter = await this.within(patience);
    this.stage.check(letter !== undefined, `no message within ${patience} ms`);
    return letter;
  }

  // The next message, acknowledged.
  async take() {
    const letter = await this.next();
    this.channel.ack(letter.message);
    return letter;
  }

  async nothing(ms, why) {
    const letter = await this.within(ms);
    this.stage.check(letter === undefined, `${why}: got ${letter?.body}`);
  }
}
