"""Acks, rejections, retries, confirms and returns."""

import time

import pika
from pika.exceptions import UnroutableError

from stage import death, deaths


def manual_ack(stage):
    """What failed comes again, marked; prefetch holds back; a closed channel loses nothing."""
    queue = stage.queue("work")
    stage.publish("", queue, "flaky")
    inbox = stage.consume(queue, 2)
    for attempt in range(3):
        letter = inbox.next()
        stage.equal(letter.method.redelivered, attempt > 0, f"redelivered at attempt {attempt}")
        stage.equal(deaths(letter), [], "x-death after a requeue")
        tag = letter.method.delivery_tag
        if attempt == 0:
            inbox.channel.basic_nack(tag, requeue=True)
        elif attempt == 1:
            inbox.channel.basic_reject(tag, requeue=True)
        else:
            inbox.channel.basic_ack(tag)
    for number in range(5):
        stage.publish("", queue, str(number))
    inbox.next()
    second = inbox.next()
    inbox.nothing(0.3, "a third message despite a prefetch of two")
    inbox.channel.basic_ack(second.method.delivery_tag, multiple=True)
    inbox.next()
    inbox.next()
    inbox.channel.close()
    again = stage.consume(queue)
    for body, redelivered in (("2", True), ("3", True), ("4", False)):
        letter = again.take()
        stage.equal(letter.body, body, "message left by the closed channel")
        stage.equal(letter.method.redelivered, redelivered, f"redelivered flag of {body}")
    again.nothing(0.2, "an acknowledged message came back")


def rejects(stage):
    """What is refused for good goes to the dead-letter exchange with its reason."""
    business = stage.exchange("business", "topic")
    dlx = stage.exchange("dlx", "fanout")
    queue = stage.queue("work", x_dead_letter_exchange=dlx)
    dead = stage.queue("dead")
    stage.bind(queue, business, "order.#")
    stage.bind(dead, dlx, "")
    stage.publish(business, "order.new", "reject", headers={"n": 1})
    stage.publish(business, "order.old", "nack", headers={"n": 1})
    inbox = stage.consume(queue)
    inbox.channel.basic_reject(inbox.next().method.delivery_tag, requeue=False)
    inbox.channel.basic_nack(inbox.next().method.delivery_tag, requeue=False)
    out = stage.consume(dead)
    for body, key in (("reject", "order.new"), ("nack", "order.old")):
        letter = out.take()
        stage.equal(letter.body, body, "dead letter")
        stage.equal(letter.method.routing_key, key, "routing key")
        stage.equal(deaths(letter), [death(queue, "rejected", 1, business, key)], "x-death")
        headers = letter.properties.headers
        stage.equal(headers["n"], 1, "own header")
        stage.equal(headers["x-first-death-reason"], "rejected", "first death reason")
        stage.equal(headers["x-first-death-queue"], queue, "first death queue")


def delayed_retry(stage):
    """A rejected message rests in a waiting queue that dead-letters it back."""
    pause = 300
    work, waiting = stage.name("work"), stage.name("pause")
    stage.queue("work", x_dead_letter_exchange="", x_dead_letter_routing_key=waiting)
    stage.queue(
        "pause", x_message_ttl=pause, x_dead_letter_exchange="", x_dead_letter_routing_key=work)
    stage.publish("", work, "flaky")
    inbox = stage.consume(work)
    due = 0
    for attempt in range(4):
        letter = inbox.next()
        want = [
            death(waiting, "expired", attempt, "", waiting),
            death(work, "rejected", attempt, "", work),
        ]
        stage.equal(deaths(letter), want if attempt else [], f"x-death at attempt {attempt}")
        if attempt:
            stage.on_time(f"attempt {attempt}", due, letter.arrived)
        if attempt == 3:
            inbox.channel.basic_ack(letter.method.delivery_tag)
            break
        due = time.time() + pause / 1000
        inbox.channel.basic_reject(letter.method.delivery_tag, requeue=False)
    inbox.nothing(2 * pause / 1000, "an acknowledged message came again")


def confirms(stage):
    """This client waits for the confirm of each message before it sends the next."""
    many = 200
    queue = stage.queue("work")
    start = time.monotonic()
    for number in range(many):
        stage.publish("", queue, str(number))
    print(f"{many} confirms one by one in {time.monotonic() - start:.2f} s")
    stage.publish("", stage.name("nowhere"), "unroutable")
    stage.equal(stage.ready(queue), many, "messages in the queue when all are confirmed")
    inbox = stage.consume(queue, 50)
    for number in range(many):
        stage.equal(inbox.take().body, str(number), "order")


def returns(stage):
    """Mandatory messages without a queue come back."""
    exchange = stage.exchange("orders", "direct")
    queue = stage.queue("work")
    stage.bind(queue, exchange, "known")
    try:
        stage.publish(
            exchange, "unknown", "body", mandatory=True, correlation_id="c-1",
            headers={"big": 2**40})
        stage.check(False, "a mandatory message without a queue was not returned")
    except UnroutableError as fault:
        stage.equal(len(fault.messages), 1, "returned messages")
        back = fault.messages[0]
        stage.equal(back.method.reply_code, 312, "reply code")
        stage.equal(back.method.reply_text, "NO_ROUTE", "reply text")
        stage.equal(back.method.exchange, exchange, "exchange")
        stage.equal(back.method.routing_key, "unknown", "routing key")
        stage.equal(back.body, b"body", "body")
        stage.equal(back.properties.correlation_id, "c-1", "correlation id")
        stage.equal(back.properties.headers, {"big": 2**40}, "headers")
    stage.publish(exchange, "unknown", "body")
    stage.publish(exchange, "known", "body", mandatory=True)
    stage.equal(stage.ready(queue), 1, "messages in the queue")
    stage.refused(
        404, "publish to an unknown exchange",
        lambda channel: channel.basic_publish(
            stage.name("nowhere"), "", "lost", pika.BasicProperties()))
