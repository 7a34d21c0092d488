#include "lun/write_cache.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lun/ranges/range_table.h"

namespace sluice::lun {
namespace {

using Done = std::function<void(const backend::Io&)>;

constexpr auto kPatience = std::chrono::minutes(5);  // what a large cache on a slow disk may take

struct Settling {
  std::shared_ptr<Unit> unit;
  std::shared_ptr<backend::Backend> backend;
  Lane lane;
  RangeHold hold;
  backend::Io io;
  Done done;
  std::shared_ptr<Settling> alive;  // while `hold` or `io` point here
};

void flushed(Settling& settling) {
  const std::shared_ptr<Settling> self = std::move(settling.alive);
  // Writes from before may still sit in the cache that is said to be off.
  if (self->io.result < 0) (void)self->backend->set_write_cache(true);
  self->unit->cache_settled();
  self->unit->ranges().release(self->lane.reactor, self->hold, self->lane.reactors);
  self->done(self->io);
}

void flush(Settling& settling) {
  settling.backend = settling.unit->shared_backend();
  backend::Io& io = settling.io;
  io.op = backend::Op::kFlush;
  io.context = &settling;
  io.done = [](backend::Io& ended) { flushed(*static_cast<Settling*>(ended.context)); };
  if (settling.backend->submit(io, *settling.lane.aio)) flushed(settling);
}

using Granted = void (*)(RangeHold& hold);

void acquire(Settling& settling, uint64_t first, Granted granted) {
  RangeHold& hold = settling.hold;
  hold = RangeHold();
  hold.first = first;
  hold.last = std::max<uint64_t>(settling.unit->blocks(), 1) - 1;
  hold.on_grant = granted;
  hold.context = &settling;
  const Lane& lane = settling.lane;
  if (settling.unit->ranges().acquire(lane.reactor, hold, lane.reactors)) granted(hold);
}

// A flush may take long, so nobody's blocks are held that long; but for one, shared, that keeps the
// backend from being closed (lun/closing.cc).
void keep_one(RangeHold& hold) {
  Settling& settling = *static_cast<Settling*>(hold.context);
  settling.unit->ranges().release(settling.lane.reactor, hold, settling.lane.reactors);
  acquire(settling, std::max<uint64_t>(settling.unit->blocks(), 1) - 1,
          [](RangeHold& one) { flush(*static_cast<Settling*>(one.context)); });
}

// On the lane's reactor, the mode is off. A write that a device was sent before may end after the
// flush, and not be in it: once all blocks are held, shared, none of those is left.
void settle(Unit& unit, const Lane& lane, Done done) {
  const auto settling = std::make_shared<Settling>();
  settling->alive = settling;
  settling->unit = unit.shared_from_this();
  settling->lane = lane;
  settling->done = std::move(done);
  acquire(*settling, 0, keep_one);
}

Result<void> switch_off(Unit& unit) {
  unit.cache_settles();  // first, so that nobody finds it off too early
  Result<void> set = unit.shared_backend()->set_write_cache(false);
  if (!set) unit.cache_settled();
  return set;
}

// Shared by whoever waits and the reactor, which may come later.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool there = false;
  int64_t result = 0;
};

}  // namespace

bool turn_cache_off(Unit& unit, const Lane& lane, Done done) {
  if (!switch_off(unit)) return false;
  settle(unit, lane, std::move(done));
  return true;
}

void reset_cache(Unit& unit, const Lane& lane, std::function<void()> done) {
  if (unit.default_write_cache()) {
    (void)unit.shared_backend()->set_write_cache(true);
  } else if (unit.write_cache() || unit.cache_settling()) {
    if (turn_cache_off(unit, lane, [done](const backend::Io&) { done(); })) return;
  }
  done();
}

Result<void> set_write_cache(Unit& unit, bool on) {
  if (on) return unit.shared_backend()->set_write_cache(true);
  if (Result<void> off = switch_off(unit); !off) return off;
  Lane lane;
  {
    const std::lock_guard lock(unit.mutex());
    lane = unit.any_lane_locked();
  }
  if (!lane.reactors) {  // no nexus was ever there: nothing was written
    unit.cache_settled();
    return {};
  }
  const auto answer = std::make_shared<Answer>();
  lane.reactors->post(lane.reactor, [unit = unit.shared_from_this(), lane, answer] {
    settle(*unit, lane, [answer](const backend::Io& io) {
      const std::lock_guard lock(answer->mutex);
      answer->result = io.result;
      answer->there = true;
      answer->changed.notify_all();
    });
  });
  std::unique_lock lock(answer->mutex);
  if (!answer->changed.wait_for(lock, kPatience, [&] { return answer->there; })) {
    return Error{
        "turning the write cache off: flushing it takes long and goes on; check the medium"};
  }
  if (answer->result >= 0) return {};
  return Error{std::string("can't turn the write cache off: flushing it failed: ") +
               std::strerror(static_cast<int>(-answer->result)) + "; check the medium"};
}

}  // namespace sluice::lun
