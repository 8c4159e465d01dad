<?php

// Plays one scheme against the broker at DUEPOST_E2E_URL and says by its exit code whether the
// broker kept its word. Without arguments it lists the schemes.

declare(strict_types=1);

require 'PhpAmqpLib/autoload.php';
require __DIR__ . '/stage.php';
require __DIR__ . '/ttl.php';
require __DIR__ . '/delayed.php';
require __DIR__ . '/settling.php';
require __DIR__ . '/routing.php';

const SCHEMES = [
    'confirms' => 'confirms',
    'delayed-exchange' => 'delayedExchange',
    'delayed-retry' => 'delayedRetry',
    'delayed-types' => 'delayedTypes',
    'head-of-line' => 'headOfLine',
    'manual-ack' => 'manualAck',
    'order-close' => 'orderClose',
    'queue-ttl' => 'queueTtl',
    'rejects' => 'rejects',
    'returns' => 'returns',
    'routing' => 'routing',
    'staircase' => 'staircase',
    'tiers' => 'tiers',
];

// A warning of the interpreter is a fault of ours.
set_error_handler(function (int $level, string $text, string $file, int $line): bool {
    if (error_reporting() & $level) {
        throw new ErrorException($text, 0, $level, $file, $line);
    }
    return false;
});

if ($argc === 1) {
    echo implode("\n", array_keys(SCHEMES)), "\n";
    exit(0);
}
$scheme = $argv[1];
if (!isset(SCHEMES[$scheme])) {
    fwrite(STDERR, "no scheme named $scheme\n");
    exit(2);
}
try {
    $stage = new Stage($scheme);
    SCHEMES[$scheme]($stage);
    $stage->close();
    echo "played $scheme: {$stage->checks} checks\n";
} catch (Throwable $fault) {
    fwrite(STDERR, "$fault\n");
    exit(1);
}
