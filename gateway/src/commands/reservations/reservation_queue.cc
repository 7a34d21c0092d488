#include "commands/reservations/reservation_queue.h"

#include <mutex>
#include <utility>

#include "base/log.h"
#include "commands/reservations/reservation_effects.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::lun {
namespace {

// A queue entry; its command may end before it is the first.
struct Waiter {
  Command* command = nullptr;
};
struct Waiting {
  Waiter* waiter = nullptr;
};

void on_end(Unit&, Command& command) { command.scratch_as<Waiting>().waiter->command = nullptr; }

void wait(Command& command, Waiter& waiter) {
  command.enter(Stage::kWaitingForChange);
  command.start_scratch<Waiting>().waiter = &waiter;
  command.cleanup = on_end;
}

// nullptr: the command has ended.
Command* stop_waiting(Waiter& waiter) {
  Command* const command = std::exchange(waiter.command, nullptr);
  if (!command) return nullptr;
  command->enter(Stage::kRunning);
  command->cleanup = nullptr;
  return command;
}

// Asks the store for the state and applies the answer. `done`: whether the state is now certain.
void settle(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
            std::function<void(bool)> done) {
  const uint64_t epoch = unit->role().epoch;
  unit->shared_store()->read(
      unit->uuid_text(), {context.reactors, context.reactor},
      [unit, context, epoch, done = std::move(done)](Result<ReservationState> found) {
        if (!found) {
          log::warning("reservations in doubt",
                       {{"unit", unit->uuid_text()}, {"error", found.error()}});
          return done(false);
        }
        take_in_settled(unit, context, epoch, std::move(found).value(), [done] { done(true); });
      });
}

bool in_doubt(Unit& unit) {
  const std::lock_guard lock(unit.mutex());
  return unit.reservations().doubtful();
}

// This command is the first; unit and command are alive as long as the waiter has the command.
void run_change(const std::shared_ptr<Unit>& unit, const std::shared_ptr<Waiter>& waiter,
                const ReactorContext& context, Handler go) {
  if (!waiter->command) return begin_next_change(*unit);
  if (!in_doubt(*unit)) return go(*unit, *stop_waiting(*waiter));
  settle(unit, context, [unit, waiter, go](bool certain) {
    Command* const command = stop_waiting(*waiter);
    if (certain && command) return go(*unit, *command);
    begin_next_change(*unit);
    // DESIGN R3: not committed, because no commit was attempted.
    if (command) finish_status(*command, scsi::Status::kBusy);
  });
}

}  // namespace

void begin_next_change(Unit& unit) {
  std::function<void()> next;
  {
    const std::lock_guard lock(unit.mutex());
    next = unit.reservations().end_change();
  }
  if (next) next();
}

void queue_change(Unit& unit, Command& command, Handler go) {
  const std::shared_ptr<Unit> shared = command.itl->shared_unit();
  const ReactorContext context = command.nexus->reactor_context();
  auto waiter = std::make_shared<Waiter>(&command);
  bool mine = false;
  bool listed = false;
  // Before it is in the queue, because its change may begin on another thread immediately.
  wait(command, *waiter);
  {
    const std::lock_guard lock(unit.mutex());
    mine = unit.reservations().begin_change();
    if (!mine) {
      listed = unit.reservations().enqueue_change([shared, waiter, context, go] {
        context.reactors->post(context.reactor, [shared, waiter, context, go] {
          run_change(shared, waiter, context, go);
        });
      });
    }
  }
  if (mine) return run_change(shared, waiter, context, go);
  if (!listed) finish_status(*stop_waiting(*waiter), scsi::Status::kBusy);
}

void hold_in_doubt(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                   PrDecision decision, const NexusId& by) {
  {
    const std::lock_guard lock(unit->mutex());
    unit->reservations().set_doubt(
        std::make_shared<const Reservations::Doubt>(std::move(decision), by));
  }
  settle(unit, context, [unit](bool) { begin_next_change(*unit); });
}

}  // namespace sluice::lun
