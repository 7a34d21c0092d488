// What a reactor provides to the commands that run on it.
#pragma once

#include "base/aio.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/reactors.h"

namespace sluice::lun {

class Forwarding;
class LatencyLog;

struct ReactorContext {
  Aio* aio = nullptr;
  BufferPool* buffers = nullptr;
  Reactors* reactors = nullptr;
  unsigned reactor = 0;
  const Nanos* now = nullptr;  // the reactor's time of the current batch
  LatencyLog* latencies = nullptr;
  Forwarding* forwarding = nullptr;  // null: a gateway without a control plane
  // A fresh reading of the clock of `now`, for Command::fresh_until; null: nothing goes stale.
  Nanos (*clock)() = nullptr;
};

}  // namespace sluice::lun
