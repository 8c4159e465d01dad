<?php

// Which queues does a key reach?

declare(strict_types=1);

function routing(Stage $stage): void
{
    $a = $stage->queue('a');
    $b = $stage->queue('b');
    $queues = ['a' => $a, 'b' => $b];

    $fanout = $stage->exchange('fanout', 'fanout');
    $stage->bind($a, $fanout, 'ignored');
    $stage->bind($b, $fanout, '');
    reaches($stage, $queues, $fanout, ['' => 'a b', 'anything' => 'a b']);

    $direct = $stage->exchange('direct', 'direct');
    $stage->bind($a, $direct, 'info');
    $stage->bind($a, $direct, 'error');
    $stage->bind($b, $direct, 'error');
    reaches($stage, $queues, $direct, ['info' => 'a', 'error' => 'a b', 'Error' => '', 'error.x' => '']);

    $topic = $stage->exchange('topic', 'topic');
    $stage->bind($a, $topic, '*.orange.*');
    $stage->bind($b, $topic, '*.*.rabbit');
    $stage->bind($b, $topic, 'lazy.#');
    reaches($stage, $queues, $topic, [
        'quick.orange.rabbit' => 'a b',
        'quick.orange.fox' => 'a',
        'lazy.pink.rabbit' => 'b',
        'lazy' => 'b',
        'lazy.one.two.three' => 'b',
        'orange' => '',
        'quick.orange.new.rabbit' => '',
        'quick.brown.fox' => '',
    ]);
}

function reaches(Stage $stage, array $queues, string $exchange, array $expected): void
{
    foreach ($expected as $key => $want) {
        $stage->publish($exchange, $key, $key);
        $got = [];
        foreach ($queues as $name => $queue) {
            while (($message = $stage->channel->basic_get($queue, true)) !== null) {
                $stage->equal($message->getBody(), $key, 'body');
                $got[] = $name;
            }
        }
        $stage->equal(implode(' ', $got), $want, "queues that key '$key' reaches");
    }
}
