"""Delays made of a time to live and a dead-letter exchange."""

import json
import time

from stage import death, deaths


def order_close(stage):
    """Each close command waits as long as its own expiration says; the paid stay open."""
    wait_exchange = stage.exchange("wait.ex", "direct")
    close_exchange = stage.exchange("close.ex", "direct")
    waiting = stage.queue(
        "wait.q",
        x_dead_letter_exchange=close_exchange,
        x_dead_letter_routing_key="order.close")
    work = stage.queue("close.q")
    stage.bind(waiting, wait_exchange, "order.wait")
    stage.bind(work, close_exchange, "order.close")

    orders, due = {}, {}
    for delay in (300, 600, 900, 1200):
        number = f"ORDER-{delay}"
        orders[number] = "WAITING"
        due[number] = time.time() + delay / 1000
        stage.publish(
            wait_exchange, "order.wait", json.dumps(number), expiration=str(delay),
            content_type="application/json", message_id=number, headers={"shop": "north"})
    orders["ORDER-600"] = "PAID"

    inbox = stage.consume(work)
    for number in due:
        letter = inbox.take()
        stage.equal(json.loads(letter.body), number, "order of expiry")
        stage.on_time(number, due[number], letter.arrived)
        stage.equal(letter.method.routing_key, "order.close", "routing key")
        stage.equal(letter.method.exchange, close_exchange, "exchange")
        stage.equal(letter.properties.expiration, None, "expiration after dead-lettering")
        stage.equal(letter.properties.message_id, number, "message id")
        stage.equal(letter.properties.headers["shop"], "north", "own header")
        stage.equal(
            deaths(letter), [death(waiting, "expired", 1, wait_exchange, "order.wait")], "x-death")
        entry = letter.properties.headers["x-death"][0]
        stage.equal(entry["original-expiration"], number[6:], "original expiration")
        if orders[number] == "WAITING":
            orders[number] = "CLOSED"
    stage.equal(list(orders.values()), ["CLOSED", "PAID", "CLOSED", "CLOSED"], "orders")
    inbox.nothing(0.2, "a close command came twice")
    stage.equal(stage.ready(waiting), 0, "messages left waiting")


def queue_ttl(stage):
    """The queue's TTL, unless the message's own is lower."""
    ttl = 1000
    delay = stage.exchange("delay.exchange", "direct")
    dead = stage.exchange("dead.letter.exchange", "direct")
    waiting = stage.queue(
        "delay.queue",
        x_message_ttl=ttl, x_dead_letter_exchange=dead, x_dead_letter_routing_key="dead.key")
    work = stage.queue("actual.queue")
    stage.bind(waiting, delay, "delay.key")
    stage.bind(work, dead, "dead.key")

    sent = (("lower", "400", 400), ("none", None, ttl), ("higher", "60000", ttl))
    due = {}
    for body, expiration, ms in sent:
        due[body] = time.time() + ms / 1000
        stage.publish(delay, "delay.key", body, expiration=expiration)
    inbox = stage.consume(work)
    for body in due:
        letter = inbox.take()
        stage.equal(letter.body, body, "order of expiry")
        stage.on_time(body, due[body], letter.arrived)
        stage.equal(letter.method.routing_key, "dead.key", "routing key")
        stage.equal(deaths(letter), [death(waiting, "expired", 1, delay, "delay.key")], "x-death")
    stage.refused(
        406, "declare with another TTL",
        lambda channel: channel.queue_declare(waiting, durable=True, arguments={
            "x-message-ttl": 2 * ttl, "x-dead-letter-exchange": dead,
            "x-dead-letter-routing-key": "dead.key"}))


def tiers(stage):
    """One waiting queue for each delay on offer."""
    work = stage.queue("work")
    ttl = {"short": 400, "middle": 800, "long": 1300}
    for name, ms in ttl.items():
        stage.queue(
            name, x_message_ttl=ms, x_dead_letter_exchange="", x_dead_letter_routing_key=work)
    due = {}
    for number in range(3):
        for name in ("long", "middle", "short"):
            due[f"{name} {number}"] = time.time() + ttl[name] / 1000
            stage.publish("", stage.name(name), f"{name} {number}")
    inbox = stage.consume(work)
    seen = {name: 0 for name in ttl}
    for _ in due:
        letter = inbox.take()
        stage.on_time(letter.body, due[letter.body], letter.arrived)
        name, number = letter.body.split()
        stage.equal(int(number), seen[name], f"order within tier {name}")
        seen[name] += 1
        stage.equal(deaths(letter)[0][0], stage.name(name), "tier that it waited in")


def head_of_line(stage):
    """A long delay in front of short ones in one queue.

    On RabbitMQ the short ones wait for the long one; here they must not.
    """
    longest = 5000
    work = stage.queue("work")
    waiting = stage.queue("wait", x_dead_letter_exchange="", x_dead_letter_routing_key=work)
    due = {}
    for delay in (longest, 900, 300, 600):
        due[delay] = time.time() + delay / 1000
        stage.publish("", waiting, str(delay), expiration=str(delay))
    inbox = stage.consume(work)
    for delay in (300, 600, 900, longest):
        letter = inbox.take()
        stage.equal(letter.body, str(delay), "order of expiry")
        stage.on_time(f"{delay} ms", due[delay], letter.arrived)
        stage.check(
            delay == longest or letter.arrived < due[longest], f"{delay} ms waited for the head")
