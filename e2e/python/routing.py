"""Which queues does a key reach?"""


def routing(stage):
    a, b = stage.queue("a"), stage.queue("b")
    queues = {"a": a, "b": b}

    fanout = stage.exchange("fanout", "fanout")
    stage.bind(a, fanout, "ignored")
    stage.bind(b, fanout, "")
    reaches(stage, queues, fanout, {"": "a b", "anything": "a b"})

    direct = stage.exchange("direct", "direct")
    stage.bind(a, direct, "info")
    stage.bind(a, direct, "error")
    stage.bind(b, direct, "error")
    reaches(stage, queues, direct, {"info": "a", "error": "a b", "Error": "", "error.x": ""})

    topic = stage.exchange("topic", "topic")
    stage.bind(a, topic, "*.orange.*")
    stage.bind(b, topic, "*.*.rabbit")
    stage.bind(b, topic, "lazy.#")
    reaches(stage, queues, topic, {
        "quick.orange.rabbit": "a b",
        "quick.orange.fox": "a",
        "lazy.pink.rabbit": "b",
        "lazy": "b",
        "lazy.one.two.three": "b",
        "orange": "",
        "quick.orange.new.rabbit": "",
        "quick.brown.fox": "",
    })


def reaches(stage, queues, exchange, expected):
    for key, want in expected.items():
        stage.publish(exchange, key, key)
        got = []
        for name, queue in queues.items():
            while (answer := stage.channel.basic_get(queue, auto_ack=True))[0]:
                stage.equal(answer[2].decode(), key, "body")
                got.append(name)
        stage.equal(" ".join(got), want, f"queues that key {key!r} reaches")
