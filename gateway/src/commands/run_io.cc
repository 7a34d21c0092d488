// Executes one backend request, in as many steps as necessary.
#include <algorithm>
#include <cerrno>
#include <climits>

#include "commands/handler.h"
#include "unit/statistics.h"

namespace sluice::lun {
namespace {

bool moves_data(backend::Op op) { return op == backend::Op::kRead || op == backend::Op::kWrite; }

void go_on(Command& command);

UnitStatistics::Shard& counters(const Command& command) {
  return command.itl->unit().statistics().shard(command.nexus->reactor_context().reactor);
}

void on_done(backend::Io& io) {
  Command& command = *static_cast<Command*>(io.context);
  UnitStatistics::end_request(counters(command), command.progress.period);
  go_on(command);
}

// Processes the result of command.io. True: more steps are necessary.
bool advance(Command& command) {
  IoProgress& progress = command.progress;
  if (!moves_data(progress.op)) return false;
  uint64_t moved = static_cast<uint64_t>(command.io.result);
  progress.offset += moved;
  progress.remaining -= moved;
  while (moved > 0) {
    iovec& vector = command.iov[progress.vector];
    if (moved < vector.iov_len) {
      vector.iov_base = static_cast<uint8_t*>(vector.iov_base) + moved;
      vector.iov_len -= moved;
      break;
    }
    moved -= vector.iov_len;
    ++progress.vector;
  }
  return progress.remaining > 0;
}

// True: complete now, as for Backend::submit().
bool submit(Command& command) {
  IoProgress& progress = command.progress;
  backend::Io& io = command.io;
  io.op = progress.op;
  io.flags = progress.flags;
  io.offset = progress.offset;
  io.length = progress.remaining;
  io.iov = nullptr;
  io.iovcnt = 0;
  io.done = on_done;
  io.context = &command;
  io.answer.status = 0;
  if (progress.op == backend::Op::kCdb) [[unlikely]] {
    io.cdb = command.cdb;
    io.iov = command.iov.data();
    io.iovcnt = static_cast<uint32_t>(command.iov.size());
  }
  if (moves_data(progress.op)) {
    io.iov = command.iov.data() + progress.vector;
    const size_t left = command.iov.size() - progress.vector;
    io.iovcnt = static_cast<uint32_t>(std::min<size_t>(left, IOV_MAX));
    if (left > IOV_MAX) [[unlikely]] {
      io.length = 0;
      for (uint32_t i = 0; i < io.iovcnt; ++i) io.length += io.iov[i].iov_len;
    }
  }
  if (command.itl->unit().backend().submit(io, *command.nexus->reactor_context().aio)) return true;
  progress.period = command.itl->unit().statistics().begin_request(counters(command));
  return false;
}

// True: `next` started another request, which must be submitted. False: the command may be gone.
bool call_next(Command& command) {
  IoProgress::Step step;
  command.progress.step = &step;
  command.progress.next(command.itl->unit(), command);
  if (step.ended) return false;
  command.progress.step = nullptr;
  return step.restarted;
}

// A step is complete: starts the next, or ends.
void go_on(Command& command) {
  for (;;) {
    const backend::Io& io = command.io;
    const bool stuck = io.result == 0 && moves_data(io.op);
    if (io.result < 0 || stuck) [[unlikely]] {
      if (io.answer.status != 0) return finish_answered(command, io.answer);
      return finish_errno(command, stuck ? -EIO : static_cast<int>(io.result), io.op);
    }
    const bool more = advance(command);
    if (command.aborted()) [[unlikely]]
      return finish_aborted(command);
    if (!more && !call_next(command)) return;
    if (!submit(command)) return;
  }
}

}  // namespace

void run_io(Unit& /*unit*/, Command& command, backend::Op op, uint8_t flags, uint64_t offset,
            uint64_t length, Handler next) {
  IoProgress::Step* const step = command.progress.step;
  command.progress = {
      .step = step, .next = next, .op = op, .flags = flags, .offset = offset, .remaining = length};
  if (step) {
    step->restarted = true;  // call_next() submits it
    return;
  }
  if (submit(command)) go_on(command);
}

}  // namespace sluice::lun
