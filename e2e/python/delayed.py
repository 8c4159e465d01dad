"""The exchange that keeps each message until it is due."""

import datetime
import decimal
import json
import time

import pika


def signed(number):
    """Pika reads the wire's signed 64-bit integers as unsigned; this reads them right."""
    return number - 2**64 if number >= 2**63 else number


def exchange(stage):
    """Mixed delays, the longest first: each comes at its own time, its delay negated."""
    name = stage.exchange("delay", "x-delayed-message", {"x-delayed-type": "direct"})
    queue = stage.queue("work")
    stage.bind(queue, name, "close")
    due = {}
    for delay in (2500, 300, 1200, 600, 301):
        due[delay] = time.time() + delay / 1000
        # The client raises an error if a mandatory message is returned.
        stage.publish(
            name, "close", str(delay), mandatory=True,
            headers={"x-delay": delay, "shop": "north"}, correlation_id=f"c-{delay}")
    stage.equal(stage.ready(queue), 0, "messages in the queue before they are due")
    inbox = stage.consume(queue)
    for delay in (300, 301, 600, 1200, 2500):
        letter = inbox.take()
        stage.equal(letter.body, str(delay), "order of release")
        stage.on_time(f"{delay} ms", due[delay], letter.arrived)
        headers = letter.properties.headers
        stage.equal(signed(headers.pop("x-delay")), -delay, "x-delay after release")
        headers.pop("x-duepost-id", None)  # which a relay adds
        stage.equal(headers, {"shop": "north"}, "headers")
        stage.equal(letter.properties.correlation_id, f"c-{delay}", "correlation id")
        stage.equal(letter.properties.delivery_mode, 2, "delivery mode")
        stage.equal(letter.method.exchange, name, "exchange")
        stage.equal(letter.method.routing_key, "close", "routing key")
    for headers in (None, {"x-delay": 0}, {"x-delay": -9000}):
        now = time.time()
        stage.publish(name, "close", "at once", headers=headers)
        letter = inbox.take()
        stage.on_time(f"headers {headers}", now, letter.arrived)
        stage.equal(letter.properties.headers, headers, "headers that ask for no delay")


def types(stage):
    """Python has one integer type; the client picks the wire type by the number's size."""
    name = stage.exchange("delay", "x-delayed-message", {"x-delayed-type": "headers"})
    queue = stage.queue("work")
    stage.channel.queue_bind(queue, name, "", {"x-match": "all", "shop": "north"})
    # 49.7 days and a little: a broker that keeps 32 bits would release it at once.
    later = {"x-delay": 2**32 + 500, "shop": "north"}
    stage.publish(name, "", "later", headers=later)
    sent = {"int": 700, "str": "400", "small int": 100}
    due = {}
    for kind, value in sent.items():
        due[kind] = time.time() + int(value) / 1000
        stage.publish(name, "", kind, headers={"x-delay": value, "shop": "north"})
    inbox = stage.consume(queue)
    for _ in due:
        letter = inbox.take()
        stage.on_time(letter.body, due[letter.body], letter.arrived)
        delay = signed(letter.properties.headers["x-delay"])
        stage.equal(delay, -int(sent[letter.body]), f"x-delay sent as {letter.body}")
    inbox.nothing(1.0, "a delay beyond 32 bits ended at once")
    refused = ("soon", True, None, [1], {"ms": 1}, decimal.Decimal("1.5"),
               datetime.datetime(2030, 1, 1))
    for value in refused:
        stage.refused(
            406, f"x-delay {value!r}",
            lambda channel, value=value: channel.basic_publish(
                name, "", "x", pika.BasicProperties(headers={"x-delay": value})))


def staircase(stage):
    """Checks with doubling delays until a deadline; the state travels in the message."""
    deadline = 1.7
    name = stage.exchange("delay", "x-delayed-message", {"x-delayed-type": "direct"})
    queue = stage.queue("check")
    stage.bind(queue, name, "check")

    def send(order, created, step):
        body = json.dumps({"order": order, "created": created, "step": step, "sent": time.time()})
        stage.publish(name, "check", body, headers={"x-delay": step})

    inbox = stage.consume(queue)
    steps = {"paid": [], "unpaid": []}
    for order in steps:
        send(order, time.time(), 200)
    running = 2
    while running:
        letter = inbox.next()
        state = json.loads(letter.body)
        order, created, step = state["order"], state["created"], state["step"]
        steps[order].append(step)
        stage.on_time(f"{order} after {step} ms", state["sent"] + step / 1000, letter.arrived)
        left = created + deadline - letter.arrived
        if order == "paid" and len(steps[order]) == 2:
            running -= 1  # paid between the first check and the second
        elif left <= 0:
            stage.on_time("deadline", created + deadline, letter.arrived)
            stage.equal(order, "unpaid", "order that reached its deadline")
            running -= 1
        else:
            send(order, created, min(2 * step, int(left * 1000) + 1))
        inbox.channel.basic_ack(letter.method.delivery_tag)
    print(steps)
    unpaid = steps["unpaid"]
    stage.check(len(unpaid) >= 3, f"too few steps: {unpaid}")
    for before, after in zip(unpaid, unpaid[1:-1]):
        stage.equal(after, 2 * before, f"a step of {unpaid}")
    inbox.nothing(0.5, "a check came after the end")
