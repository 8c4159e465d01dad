<?php

// Delays made of a time to live and a dead-letter exchange.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Wire\AMQPTable;

/** Each close command waits as long as its own expiration says; the paid stay open. */
function orderClose(Stage $stage): void
{
    $waitExchange = $stage->exchange('wait.ex', 'direct');
    $closeExchange = $stage->exchange('close.ex', 'direct');
    $waiting = $stage->queue('wait.q', [
        'x-dead-letter-exchange' => $closeExchange,
        'x-dead-letter-routing-key' => 'order.close',
    ]);
    $work = $stage->queue('close.q');
    $stage->bind($waiting, $waitExchange, 'order.wait');
    $stage->bind($work, $closeExchange, 'order.close');

    $orders = $due = [];
    foreach ([300, 600, 900, 1200] as $delay) {
        $number = "ORDER-$delay";
        $orders[$number] = 'WAITING';
        $due[$number] = microtime(true) + $delay / 1000;
        $stage->publish($waitExchange, 'order.wait', json_encode($number), [
            'expiration' => (string) $delay,
            'content_type' => 'application/json',
            'message_id' => $number,
            'application_headers' => ['shop' => 'north'],
        ]);
    }
    $orders['ORDER-600'] = 'PAID';

    $inbox = $stage->consume($work);
    foreach (array_keys($orders) as $number) {
        $letter = $inbox->take();
        $message = $letter->message;
        $stage->equal(json_decode($message->getBody()), $number, 'order of expiry');
        $stage->onTime($number, $due[$number], $letter->arrived);
        $stage->equal($message->getRoutingKey(), 'order.close', 'routing key');
        $stage->equal($message->getExchange(), $closeExchange, 'exchange');
        $stage->check(!$message->has('expiration'), 'expiration is still there after dead-lettering');
        $stage->equal($message->get('message_id'), $number, 'message id');
        $stage->equal($letter->headers()['shop'], 'north', 'own header');
        $stage->equal($letter->deaths(), [death($waiting, 'expired', 1, $waitExchange, 'order.wait')], 'x-death');
        $stage->equal($letter->headers()['x-death'][0]['original-expiration'], substr($number, 6), 'original expiration');
        if ($orders[$number] === 'WAITING') {
            $orders[$number] = 'CLOSED';
        }
    }
    $stage->equal(array_values($orders), ['CLOSED', 'PAID', 'CLOSED', 'CLOSED'], 'orders');
    $inbox->nothing(0.2, 'a close command came twice');
    $stage->equal($stage->ready($waiting), 0, 'messages left waiting');
}

/** The queue's TTL, unless the message's own is lower. */
function queueTtl(Stage $stage): void
{
    $ttl = 1000;
    $delay = $stage->exchange('delay.exchange', 'direct');
    $dead = $stage->exchange('dead.letter.exchange', 'direct');
    $arguments = [
        'x-message-ttl' => $ttl,
        'x-dead-letter-exchange' => $dead,
        'x-dead-letter-routing-key' => 'dead.key',
    ];
    $waiting = $stage->queue('delay.queue', $arguments);
    $work = $stage->queue('actual.queue');
    $stage->bind($waiting, $delay, 'delay.key');
    $stage->bind($work, $dead, 'dead.key');

    $sent = ['lower' => ['400', 400], 'none' => [null, $ttl], 'higher' => ['60000', $ttl]];
    $due = [];
    foreach ($sent as $body => [$expiration, $ms]) {
        $due[$body] = microtime(true) + $ms / 1000;
        $stage->publish($delay, 'delay.key', $body, $expiration === null ? [] : ['expiration' => $expiration]);
    }
    $inbox = $stage->consume($work);
    foreach (array_keys($sent) as $body) {
        $letter = $inbox->take();
        $stage->equal($letter->message->getBody(), $body, 'order of expiry');
        $stage->onTime($body, $due[$body], $letter->arrived);
        $stage->equal($letter->message->getRoutingKey(), 'dead.key', 'routing key');
        $stage->equal($letter->deaths(), [death($waiting, 'expired', 1, $delay, 'delay.key')], 'x-death');
    }
    $arguments['x-message-ttl'] = 2 * $ttl;
    $stage->refused(
        406,
        'declare with another TTL',
        fn (AMQPChannel $channel) =>
            $channel->queue_declare($waiting, false, true, false, false, false, new AMQPTable($arguments))
    );
}

/** One waiting queue for each delay on offer. */
function tiers(Stage $stage): void
{
    $work = $stage->queue('work');
    $ttl = ['short' => 400, 'middle' => 800, 'long' => 1300];
    foreach ($ttl as $name => $ms) {
        $stage->queue($name, [
            'x-message-ttl' => $ms,
            'x-dead-letter-exchange' => '',
            'x-dead-letter-routing-key' => $work,
        ]);
    }
    $due = [];
    for ($round = 0; $round < 3; $round++) {
        foreach (['long', 'middle', 'short'] as $name) {
            $due["$name $round"] = microtime(true) + $ttl[$name] / 1000;
            $stage->publish('', $stage->name($name), "$name $round");
        }
    }
    $inbox = $stage->consume($work);
    $next = array_fill_keys(array_keys($ttl), 0);
    for ($i = 0; $i < count($due); $i++) {
        $letter = $inbox->take();
        $body = $letter->message->getBody();
        $stage->onTime($body, $due[$body], $letter->arrived);
        [$name, $round] = explode(' ', $body);
        $stage->equal((int) $round, $next[$name]++, "order within tier $name");
        $stage->equal($letter->deaths()[0][0], $stage->name($name), 'tier that it waited in');
    }
}

/**
 * A long delay in front of short ones in one queue. On RabbitMQ the short ones wait for the long
 * one; here they must not.
 */
function headOfLine(Stage $stage): void
{
    $long = 5000;
    $work = $stage->queue('work');
    $waiting = $stage->queue('wait', ['x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $work]);
    $due = [];
    foreach ([$long, 900, 300, 600] as $delay) {
        $due[$delay] = microtime(true) + $delay / 1000;
        $stage->publish('', $waiting, (string) $delay, ['expiration' => (string) $delay]);
    }
    $inbox = $stage->consume($work);
    foreach ([300, 600, 900, $long] as $delay) {
        $letter = $inbox->take();
        $stage->equal($letter->message->getBody(), (string) $delay, 'order of expiry');
        $stage->onTime("$delay ms", $due[$delay], $letter->arrived);
        $stage->check($delay === $long || $letter->arrived < $due[$long], "$delay ms waited for the head");
    }
}
