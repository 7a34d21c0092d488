// The steps of closing:
//
// 1. The gate closes.
// 2. Started commands complete, on every reactor.
// 3. An exclusive hold on all blocks waits for third-party copies from other units; later ones find
//   the gate closed.
// 4. A flush (release only).
// 5. The backend is detached and closes, which may take long.
//
// A fence first drops the nexuses, which aborts commands that were not started. It may overtake a
// release, even during its close.
#include "unit/closing.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "unit/countdown.h"
#include "unit/ranges/range_table.h"
#include "unit/unit.h"

namespace sluice::lun {

// A unit that loses its backend. The unit's mutex protects `fenced` and `done`.
struct Closing {
  std::shared_ptr<Unit> unit;
  Reactors* reactors = nullptr;
  bool fenced = false;
  std::vector<std::function<void(bool flushed)>> done;
  RangeHold look;  // all blocks, on reactor 0
  backend::Io flush;
  std::shared_ptr<Closing> alive;  // keeps this alive while `look` or `flush` refer to it
};

namespace {

using ClosingPtr = std::shared_ptr<Closing>;

constexpr unsigned kHere = 0;  // the reactor that closes units

// R4: drops every nexus that has the unit, without answers. This includes nexuses that have not
// used it yet, because their first command for the unit may already be on its way.
void drop_nexuses(const ClosingPtr& closing, const char* why, std::function<void()> done) {
  auto all = std::make_shared<Countdown>([closing, done = std::move(done)]() mutable {
    closing->reactors->post(kHere, std::move(done));
  });
  std::vector<std::shared_ptr<AttachedNexus>> nexuses;
  std::vector<std::shared_ptr<ExportingTarget>> targets;
  {
    const std::lock_guard lock(closing->unit->mutex());
    nexuses = closing->unit->attached().living_locked();
    targets = closing->unit->targets_locked();
  }
  for (auto& nexus : nexuses) {
    all->begin();
    const unsigned reactor = nexus->reactor_context().reactor;
    closing->reactors->post(reactor, [nexus = std::move(nexus), all, why] {
      nexus->abort_commands(false, nullptr);
      nexus->drop_nexus(why);
      all->through();
    });
  }
  for (const auto& target : targets) {
    target->drop_unused_nexuses(closing->unit, *closing->reactors, why, all);
  }
  all->through();
}

void tell(const ClosingPtr& closing, std::vector<std::function<void(bool)>> done, bool fenced,
          bool flushed) {
  const auto all = [done = std::move(done), flushed] {
    for (const auto& d : done) d(flushed);
  };
  if (flushed || fenced) return all();
  drop_nexuses(closing, "its volume was taken away from this gateway", all);
}

// On reactor 0. Only from now on can another gateway own the volume (DESIGN R2).
void closed(const ClosingPtr& closing, bool flushed) {
  std::vector<std::function<void(bool)>> done;
  bool fenced = false;
  {
    const std::lock_guard lock(closing->unit->mutex());
    closing->unit->closing_locked().reset();
    done = std::move(closing->done);
    fenced = closing->fenced;
  }
  tell(closing, std::move(done), fenced, flushed && !fenced);
}

// On reactor 0; nothing of the unit is in flight.
void detach(const ClosingPtr& closing, bool flushed) {
  const std::shared_ptr<Unit>& unit = closing->unit;
  std::shared_ptr<backend::Backend> backend;
  {
    const std::lock_guard lock(unit->mutex());
    backend = unit->close_locked();
    unit->lower_gate(Unit::kDraining);
  }
  // From now on blocks change without this gateway's knowledge, so all tokens become invalid.
  unit->changes().changing(0, UINT64_MAX, INT64_MAX);
  unit->ranges().release(kHere, closing->look, closing->reactors);
  unit->attached().on_every(*closing->reactors,
                            [](AttachedNexus& nexus) { nexus.forget_backend(); });
  backend->close([closing, flushed] {
    closing->reactors->post(kHere, [closing, flushed] { closed(closing, flushed); });
  });
  closing->alive.reset();
}

void flushed(backend::Io& io) {
  const ClosingPtr closing = static_cast<Closing*>(io.context)->alive;
  const auto error = static_cast<int>(-io.result);
  if (error > 0) {
    log::error("flush failed while a volume was given up",
               {{"unit", closing->unit->uuid_text()}, {"errno", error}});
  }
  closing->reactors->post(kHere, [closing, error] { detach(closing, error <= 0); });
}

// On reactor 0: no command and no copy uses the backend any more.
void flush(const ClosingPtr& closing) {
  Unit& unit = *closing->unit;
  ReactorContext context;
  bool fenced = false;
  {
    const std::lock_guard lock(unit.mutex());
    context = unit.attached().any_reactor_context_locked();
    fenced = closing->fenced;
  }
  // There never was a nexus, so nothing was written.
  if (fenced || !context.reactors) return detach(closing, !fenced);
  closing->reactors->post(context.reactor, [closing, aio = context.aio] {
    backend::Io& io = closing->flush;
    io.op = backend::Op::kFlush;
    io.done = flushed;
    io.context = closing.get();
    if (closing->unit->backend().submit(io, *aio)) flushed(io);
  });
}

void look(const ClosingPtr& closing) {
  Unit& unit = *closing->unit;
  closing->alive = closing;
  RangeHold& hold = closing->look;
  hold.first = 0;
  hold.last = std::max<uint64_t>(unit.blocks(), 1) - 1;
  hold.exclusive = true;
  hold.context = closing.get();
  hold.on_grant = [](RangeHold& granted) { flush(static_cast<Closing*>(granted.context)->alive); };
  if (unit.ranges().acquire(kHere, hold, closing->reactors)) flush(closing);
}

void drain_all(const ClosingPtr& closing) {
  auto all = std::make_shared<Countdown>(
      [closing] { closing->reactors->post(kHere, [closing] { look(closing); }); });
  std::vector<std::shared_ptr<AttachedNexus>> nexuses;
  {
    const std::lock_guard lock(closing->unit->mutex());
    nexuses = closing->unit->attached().living_locked();
  }
  for (auto& nexus : nexuses) {
    all->begin();
    const unsigned reactor = nexus->reactor_context().reactor;
    closing->reactors->post(reactor, [nexus = std::move(nexus), all] {
      if (!nexus->drain_started([all] { all->through(); })) all->through();
    });
  }
  all->through();
}

// Closes the gate. Null: there is no backend, or it is already being closed (*under_way).
ClosingPtr begin_closing(Unit& unit, Reactors& reactors, bool fenced,
                         std::function<void(bool)> done, ClosingPtr* under_way) {
  const std::lock_guard lock(unit.mutex());
  if (ClosingPtr& present = unit.closing_locked()) {
    present->fenced = present->fenced || fenced;
    present->done.push_back(std::move(done));
    // From now on, started commands end as aborted.
    if (fenced) unit.lower_gate(Unit::kDraining);
    *under_way = present;
    return nullptr;
  }
  if (!unit.opened_locked()) {
    reactors.post(kHere, [done = std::move(done)] { done(true); });
    return nullptr;
  }
  auto closing = std::make_shared<Closing>();
  closing->unit = unit.shared_from_this();
  closing->reactors = &reactors;
  closing->fenced = fenced;
  closing->done.push_back(std::move(done));
  unit.closing_locked() = closing;
  unit.stop_serving_locked(!fenced);
  return closing;
}

}  // namespace

void release(Unit& unit, Reactors& reactors, std::function<void(bool flushed)> done) {
  ClosingPtr under_way;
  const ClosingPtr closing = begin_closing(unit, reactors, false, std::move(done), &under_way);
  if (closing) drain_all(closing);
}

void fence(Unit& unit, Reactors& reactors, std::function<void()> done) {
  ClosingPtr under_way;
  const ClosingPtr closing =
      begin_closing(unit, reactors, true, [done = std::move(done)](bool) { done(); }, &under_way);
  const ClosingPtr affected = closing ? closing : under_way;
  if (!affected) return;
  drop_nexuses(affected, "its volume has another owner (fenced)", [] {});
  if (closing) drain_all(closing);
}

}  // namespace sluice::lun
