<?php

// The exchange that keeps each message until it is due.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;

/** Mixed delays, the longest first: each comes at its own time, its delay negated. */
function delayedExchange(Stage $stage): void
{
    $name = $stage->exchange('delay', 'x-delayed-message', ['x-delayed-type' => 'direct']);
    $queue = $stage->queue('work');
    $stage->bind($queue, $name, 'close');
    $returned = 0;
    $stage->channel->set_return_listener(function () use (&$returned): void {
        $returned++;
    });
    $due = [];
    foreach ([2500, 300, 1200, 600, 301] as $delay) {
        $due[$delay] = microtime(true) + $delay / 1000;
        $stage->publish($name, 'close', (string) $delay, [
            'application_headers' => ['x-delay' => $delay, 'shop' => 'north'],
            'correlation_id' => "c-$delay",
        ], true);
    }
    $stage->equal($returned, 0, 'returned messages');
    $stage->equal($stage->ready($queue), 0, 'messages in the queue before they are due');
    $inbox = $stage->consume($queue);
    foreach ([300, 301, 600, 1200, 2500] as $delay) {
        $letter = $inbox->take();
        $message = $letter->message;
        $stage->equal($message->getBody(), (string) $delay, 'order of release');
        $stage->onTime("$delay ms", $due[$delay], $letter->arrived);
        $headers = $letter->headers();
        unset($headers['x-duepost-id']); // which a relay adds
        ksort($headers);
        $stage->equal($headers, ['shop' => 'north', 'x-delay' => -$delay], 'headers');
        $stage->equal($message->get('correlation_id'), "c-$delay", 'correlation id');
        $stage->equal($message->get('delivery_mode'), 2, 'delivery mode');
        $stage->equal($message->getExchange(), $name, 'exchange');
        $stage->equal($message->getRoutingKey(), 'close', 'routing key');
    }
    foreach ([[], ['x-delay' => 0], ['x-delay' => -9000]] as $headers) {
        $now = microtime(true);
        $stage->publish($name, 'close', 'at once', ['application_headers' => $headers]);
        $letter = $inbox->take();
        $stage->onTime('headers ' . json_encode($headers), $now, $letter->arrived);
        $stage->equal($letter->headers(), $headers, 'headers that ask for no delay');
    }
}

/** Integers go out as 32 or 64 bits by their size, floats as strings. */
function delayedTypes(Stage $stage): void
{
    $name = $stage->exchange('delay', 'x-delayed-message', ['x-delayed-type' => 'fanout']);
    $queue = $stage->queue('work');
    $stage->bind($queue, $name, '');
    // 49.7 days and a little: a broker that keeps 32 bits would release it at once.
    $stage->publish($name, '', 'later', ['application_headers' => ['x-delay' => (1 << 32) + 500]]);
    $sent = ['integer' => 700, 'string' => '400', 'whole float' => 0.5 * 1000, 'small integer' => 100];
    $due = [];
    foreach ($sent as $type => $value) {
        $due[$type] = microtime(true) + $value / 1000;
        $stage->publish($name, '', $type, ['application_headers' => ['x-delay' => $value]]);
    }
    $inbox = $stage->consume($queue);
    for ($i = 0; $i < count($sent); $i++) {
        $letter = $inbox->take();
        $type = $letter->message->getBody();
        $stage->onTime($type, $due[$type], $letter->arrived);
        $stage->equal($letter->headers()['x-delay'], -(int) $sent[$type], "x-delay sent as $type");
    }
    $inbox->nothing(1.0, 'a delay beyond 32 bits ended at once');
    foreach (['soon', 1.5, true, null, [1], ['ms' => 1], new DateTimeImmutable('2030-01-01')] as $value) {
        $stage->refused(
            406,
            'x-delay ' . json_encode($value),
            fn (AMQPChannel $channel) => $channel->basic_publish(
                $stage->message('x', ['application_headers' => ['x-delay' => $value]]),
                $name
            )
        );
    }
}

/** Checks with doubling delays until a deadline; the state travels in the message. */
function staircase(Stage $stage): void
{
    $deadline = 1.7;
    $name = $stage->exchange('delay', 'x-delayed-message', ['x-delayed-type' => 'direct']);
    $queue = $stage->queue('check');
    $stage->bind($queue, $name, 'check');
    $send = function (string $order, float $created, int $step) use ($stage, $name): void {
        $body = json_encode([$order, $created, $step, microtime(true)]);
        $stage->publish($name, 'check', $body, ['application_headers' => ['x-delay' => $step]]);
    };

    $inbox = $stage->consume($queue);
    $steps = ['paid' => [], 'unpaid' => []];
    foreach (array_keys($steps) as $order) {
        $send($order, microtime(true), 200);
    }
    for ($open = 2; $open > 0;) {
        $letter = $inbox->next();
        [$order, $created, $step, $sent] = json_decode($letter->message->getBody());
        $steps[$order][] = $step;
        $stage->onTime("$order after $step ms", $sent + $step / 1000, $letter->arrived);
        $left = $created + $deadline - $letter->arrived;
        if ($order === 'paid' && count($steps[$order]) === 2) {
            $open--; // paid between the first check and the second
        } elseif ($left <= 0) {
            $stage->onTime('deadline', $created + $deadline, $letter->arrived);
            $stage->equal($order, 'unpaid', 'order that reached its deadline');
            $open--;
        } else {
            $send($order, $created, min(2 * $step, (int) ($left * 1000) + 1));
        }
        $letter->message->ack();
    }
    echo json_encode($steps), "\n";
    $unpaid = $steps['unpaid'];
    $stage->check(count($unpaid) >= 3, 'too few steps: ' . json_encode($unpaid));
    for ($i = 1; $i < count($unpaid) - 1; $i++) {
        $stage->equal($unpaid[$i], 2 * $unpaid[$i - 1], "step $i of " . json_encode($unpaid));
    }
    $inbox->nothing(0.5, 'a check came after the end');
}
