<?php

// Acks, rejections, retries, confirms and returns.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Message\AMQPMessage;

/** What failed comes again, marked; prefetch holds back; a closed channel loses nothing. */
function manualAck(Stage $stage): void
{
    $queue = $stage->queue('work');
    $stage->publish('', $queue, 'flaky');
    $inbox = $stage->consume($queue, 2);
    for ($attempt = 0; $attempt < 3; $attempt++) {
        $letter = $inbox->next();
        $stage->equal($letter->message->isRedelivered(), $attempt > 0, "redelivered at attempt $attempt");
        $stage->equal($letter->deaths(), [], 'x-death after a requeue');
        match ($attempt) {
            0 => $letter->message->nack(true),
            1 => $letter->message->reject(true),
            2 => $letter->message->ack(),
        };
    }
    for ($i = 0; $i < 5; $i++) {
        $stage->publish('', $queue, (string) $i);
    }
    $inbox->next();
    $second = $inbox->next();
    $inbox->nothing(0.3, 'a third message despite a prefetch of two');
    $second->message->ack(true);
    $inbox->next();
    $inbox->next();
    $inbox->channel->close();
    $again = $stage->consume($queue);
    foreach ([['2', true], ['3', true], ['4', false]] as [$body, $redelivered]) {
        $letter = $again->take();
        $stage->equal($letter->message->getBody(), $body, 'message left by the closed channel');
        $stage->equal($letter->message->isRedelivered(), $redelivered, "redelivered flag of $body");
    }
    $again->nothing(0.2, 'an acknowledged message came back');
}

/** What is refused for good goes to the dead-letter exchange with its reason. */
function rejects(Stage $stage): void
{
    $business = $stage->exchange('business', 'topic');
    $dlx = $stage->exchange('dlx', 'fanout');
    $queue = $stage->queue('work', ['x-dead-letter-exchange' => $dlx]);
    $dead = $stage->queue('dead');
    $stage->bind($queue, $business, 'order.#');
    $stage->bind($dead, $dlx, '');
    $stage->publish($business, 'order.new', 'reject', ['application_headers' => ['n' => 1]]);
    $stage->publish($business, 'order.old', 'nack', ['application_headers' => ['n' => 1]]);
    $inbox = $stage->consume($queue);
    $inbox->next()->message->reject(false);
    $inbox->next()->message->nack(false);
    $out = $stage->consume($dead);
    foreach (['reject' => 'order.new', 'nack' => 'order.old'] as $body => $key) {
        $letter = $out->take();
        $stage->equal($letter->message->getBody(), $body, 'dead letter');
        $stage->equal($letter->message->getRoutingKey(), $key, 'routing key');
        $stage->equal($letter->headers()['n'], 1, 'own header');
        $stage->equal($letter->deaths(), [death($queue, 'rejected', 1, $business, $key)], 'x-death');
        $stage->equal($letter->headers()['x-first-death-reason'], 'rejected', 'first death reason');
    }
}

/** A rejected message rests in a waiting queue that dead-letters it back. */
function delayedRetry(Stage $stage): void
{
    $pause = 300;
    $work = $stage->name('work');
    $waiting = $stage->name('pause');
    $stage->queue('work', ['x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $waiting]);
    $stage->queue('pause', [
        'x-message-ttl' => $pause,
        'x-dead-letter-exchange' => '',
        'x-dead-letter-routing-key' => $work,
    ]);
    $stage->publish('', $work, 'flaky');
    $inbox = $stage->consume($work);
    $due = 0.0;
    for ($attempt = 0; $attempt < 4; $attempt++) {
        $letter = $inbox->next();
        $want = [
            death($waiting, 'expired', $attempt, '', $waiting),
            death($work, 'rejected', $attempt, '', $work),
        ];
        $stage->equal($letter->deaths(), $attempt === 0 ? [] : $want, "x-death at attempt $attempt");
        if ($attempt > 0) {
            $stage->onTime("attempt $attempt", $due, $letter->arrived);
        }
        if ($attempt === 3) {
            $letter->message->ack();
            break;
        }
        $due = microtime(true) + $pause / 1000;
        $letter->message->reject(false);
    }
    $inbox->nothing(2 * $pause / 1000, 'an acknowledged message came again');
}

/** A batch of confirms, then one at a time. */
function confirms(Stage $stage): void
{
    $many = 500;
    $queue = $stage->queue('work');
    $acks = $nacks = 0;
    $stage->channel->set_ack_handler(function (AMQPMessage $message) use (&$acks): void {
        $acks++;
    });
    $stage->channel->set_nack_handler(function (AMQPMessage $message) use (&$nacks): void {
        $nacks++;
    });
    for ($i = 0; $i < $many; $i++) {
        $stage->channel->basic_publish($stage->message((string) $i), '', $queue);
    }
    $stage->channel->wait_for_pending_acks(PATIENCE);
    $stage->equal([$acks, $nacks], [$many, 0], 'acks and nacks');
    $stage->equal($stage->ready($queue), $many, 'messages in the queue when all are confirmed');
    for ($i = 0; $i < 20; $i++) {
        $stage->publish('', $queue, 'single');
    }
    $stage->publish('', $stage->name('nowhere'), 'unroutable');
    $stage->equal([$acks, $nacks], [$many + 21, 0], 'acks and nacks');
    $inbox = $stage->consume($queue, 100);
    for ($i = 0; $i < $many; $i++) {
        $stage->equal($inbox->take()->message->getBody(), (string) $i, 'order');
    }
}

/** Mandatory messages without a queue come back, before their confirms. */
function returns(Stage $stage): void
{
    $exchange = $stage->exchange('orders', 'direct');
    $queue = $stage->queue('work');
    $stage->bind($queue, $exchange, 'known');
    $events = [];
    $stage->channel->set_ack_handler(function () use (&$events): void {
        $events[] = 'ack';
    });
    $stage->channel->set_return_listener(
        function (int $code, string $text, string $from, string $key, AMQPMessage $message) use ($stage, $exchange, &$events): void {
            $events[] = 'return';
            $stage->equal([$code, $text, $from, $key], [312, 'NO_ROUTE', $exchange, 'unknown'], 'return');
            $stage->equal($message->getBody(), 'body', 'body');
            $stage->equal($message->get('correlation_id'), 'c-1', 'correlation id');
            $stage->equal($message->get('application_headers')->getNativeData(), ['big' => 1 << 40], 'headers');
        }
    );
    $properties = ['correlation_id' => 'c-1', 'application_headers' => ['big' => 1 << 40]];
    foreach ([['unknown', true, ['return', 'ack']], ['unknown', false, ['ack']], ['known', true, ['ack']]] as [$key, $mandatory, $want]) {
        $events = [];
        $stage->publish($exchange, $key, 'body', $properties, $mandatory);
        $stage->equal($events, $want, "events of $key");
    }
    $stage->equal($stage->ready($queue), 1, 'messages in the queue');
    $stage->refused(
        404,
        'publish to an unknown exchange',
        fn (AMQPChannel $channel) => $channel->basic_publish($stage->message('lost'), $stage->name('nowhere'))
    );
}
