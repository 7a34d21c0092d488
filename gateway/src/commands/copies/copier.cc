#include "commands/copies/copier.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "commands/handler.h"
#include "commands/medium_log.h"
#include "unit/bandwidth.h"
#include "unit/ranges/range_table.h"

namespace sluice::lun {
namespace {

// Zeros need no memory, but the blocks are held in pieces.
constexpr uint64_t kZeroPiece = uint64_t{16} << 20;

bool overlap(const CopyExtent& e) {
  return e.source == e.destination && e.source_offset < e.destination_offset + e.bytes &&
         e.destination_offset < e.source_offset + e.bytes;
}

bool medium_is_gone(int error) {
  return error == ENODEV || error == ENXIO || error == ENOENT || error == ESTALE;
}

}  // namespace

Copier::Copier(Command& command) : command_(command), context_(command.nexus->reactor_context()) {
  for (Chunk& chunk : chunks_) chunk.copier = this;
}

// Allocates full chunks if the pool permits, else smaller ones, which slows the copy down.
bool Copier::take_memory(Chunk& chunk) {
  for (uint32_t size = BufferPool::kLargest; size >= 4096 && chunk.capacity == 0; size /= 4) {
    for (BufferRef& buffer : chunk.buffers) {
      buffer = context_.buffers->allocate(size);
      if (!buffer) break;
      chunk.capacity += size;
    }
  }
  return chunk.capacity > 0;
}

bool Copier::reserve_memory() {
  if (!take_memory(chunks_[0])) return false;
  for (size_t i = 1; i < chunks_.size(); ++i) take_memory(chunks_[i]);
  return true;
}

void Copier::run(const CopyExtent& extent, std::function<void(const CopyFault&)> done) {
  // Both units must know the nexus: a release uses the context of an attached nexus for its flush.
  if (extent.source) command_.nexus->use_luns_of(*extent.source);
  command_.nexus->use_luns_of(*extent.destination);
  extent_ = extent;
  done_ = std::move(done);
  fault_ = {};
  taken_ = 0;
  failed_at_ = extent.bytes;
  // Behaves as if all data was read before the first write: copies backward if the destination is
  // behind the source.
  overlapping_ = overlap(extent);
  backward_ = overlapping_ && extent.destination_offset > extent.source_offset;
  piece_ = extent.source ? chunks_[0].capacity : kZeroPiece;
  schedule();
}

uint64_t Copier::copied() const {
  if (!fault_) return extent_.bytes;
  return backward_ ? 0 : std::min(failed_at_, taken_);
}

// Posts between chunks, so that the reactor can do other work: a backend may complete everything
// within submit().
void Copier::schedule() {
  if (std::exchange(scheduled_, true)) return;
  context_.reactors->post(context_.reactor, [this] { pump(); });
}

void Copier::pump() {
  scheduled_ = false;
  if (command_.aborted() && !fault_) fault_.where = CopyFault::Where::kAborted;
  bool busy = false;
  for (Chunk& chunk : chunks_) {
    const bool fits = chunk.capacity > 0 || !extent_.source;
    const bool alone = overlapping_ && &chunk != &chunks_[0];
    if (!chunk.busy && !fault_ && taken_ < extent_.bytes && fits && !alone) start(chunk);
    busy = busy || chunk.busy;
  }
  if (busy || scheduled_) return;
  // `done` may destroy this object.
  const CopyFault fault = fault_;
  std::exchange(done_, nullptr)(fault);
}

void Copier::start(Chunk& chunk) {
  const uint64_t capacity = extent_.source ? chunk.capacity : piece_;
  chunk.length = std::min(capacity, extent_.bytes - taken_);
  chunk.at = backward_ ? extent_.bytes - taken_ - chunk.length : taken_;
  taken_ += chunk.length;
  chunk.busy = true;
  chunk.writing = extent_.source == nullptr;
  acquire(chunk);
}

Unit& Copier::unit_of(const Chunk& chunk) const {
  return chunk.writing ? *extent_.destination : *extent_.source;
}

// Zeros are not charged, as for UNMAP. A planned move waits for running copies, so these continue
// without a limit.
bool Copier::take_bandwidth(const Chunk& chunk) const {
  const Unit& unit = unit_of(chunk);
  if (!extent_.source || command_.aborted() || fault_ || !(unit.gate() & Unit::kLimited))
    return true;
  const uint64_t gates =
      command_.itl->unit().gate() | extent_.source->gate() | extent_.destination->gate();
  return unit.bandwidth().take_bytes(*context_.now, step_bytes(chunk)) || (gates & Unit::kNotOwner);
}

void Copier::acquire(Chunk& chunk) {
  if (!take_bandwidth(chunk)) {
    return command_.nexus->after_tick([this, &chunk] { acquire(chunk); });
  }
  Unit& unit = unit_of(chunk);
  const uint64_t offset =
      (chunk.writing ? extent_.destination_offset : extent_.source_offset) + chunk.at;
  chunk.hold.first = offset / unit.block_size();
  chunk.hold.last = (offset + step_bytes(chunk) - 1) / unit.block_size();
  chunk.hold.exclusive = chunk.writing;
  chunk.hold.context = &chunk;
  chunk.hold.on_grant = [](RangeHold& hold) {
    Chunk& c = *static_cast<Chunk*>(hold.context);
    c.copier->granted(c);
  };
  if (unit.ranges().acquire(context_.reactor, chunk.hold, context_.reactors)) granted(chunk);
}

CopyFault Copier::refusal(const Chunk& chunk) const {
  CopyFault fault;
  if (command_.aborted()) {
    fault.where = CopyFault::Where::kAborted;
    return fault;
  }
  fault.where = chunk.writing ? CopyFault::Where::kDestination : CopyFault::Where::kSource;
  if (const auto refused = copy_refusal(unit_of(chunk), command_.nexus->id(), chunk.writing)) {
    fault.conflict = refused->conflict;
    fault.sense = refused->sense;
    return fault;
  }
  // Checks as if the nexus wrote the LUN itself.
  if (chunk.writing && command_.nexus->is_read_only(unit_of(chunk))) {
    fault.sense = scsi::Sense::make(scsi::SenseKey::kDataProtect, 0x27, 0x00);
    return fault;
  }
  if (!chunk.writing && check_) fault.sense = check_();
  if (fault.sense.key == scsi::SenseKey::kNoSense) fault.where = CopyFault::Where::kNone;
  return fault;
}

void Copier::granted(Chunk& chunk) {
  const CopyFault refused = fault_ ? fault_ : refusal(chunk);
  if (refused) {
    fail(chunk, refused);
    release_range(chunk);
    return retire(chunk);
  }
  if (chunk.writing) {
    extent_.destination->changes().changing(chunk.hold.first, chunk.hold.last, *context_.now);
  }
  chunk.moved = 0;
  if (chunk.writing) fill_up(chunk);
  if (submit(chunk)) go_on(chunk);
}

// Whole blocks of the unit that the chunk accesses now.
uint64_t Copier::step_bytes(const Chunk& chunk) const {
  const uint64_t block = unit_of(chunk).block_size();
  return (chunk.length + block - 1) / block * block;
}

void Copier::fill_up(Chunk& chunk) const {
  if (!extent_.source) return;
  const uint64_t size = chunk.buffers[0].capacity();
  for (uint64_t at = chunk.length; at < step_bytes(chunk);) {
    const uint64_t part = std::min(step_bytes(chunk) - at, size - at % size);
    std::memset(chunk.buffers[at / size].data() + at % size, 0, part);
    at += part;
  }
}

UnitStatistics::Shard& Copier::counters(const Chunk& chunk) const {
  return unit_of(chunk).statistics().shard(context_.reactor);
}

// true: complete now, as Backend::submit() says.
bool Copier::submit(Chunk& chunk) {
  backend::Io& io = chunk.io;
  const uint64_t start = chunk.writing ? extent_.destination_offset : extent_.source_offset;
  io.op = !extent_.source ? backend::Op::kWriteZeroes
          : chunk.writing ? backend::Op::kWrite
                          : backend::Op::kRead;
  io.flags = extent_.source ? uint8_t{0} : uint8_t{backend::kIoMayUnmap};
  io.offset = start + chunk.at + chunk.moved;
  io.length = step_bytes(chunk) - chunk.moved;
  io.iov = chunk.iov.data();
  io.iovcnt = 0;
  // The buffers of a chunk are all of one size.
  for (uint64_t at = chunk.moved; extent_.source && at < step_bytes(chunk);) {
    const uint64_t size = chunk.buffers[0].capacity();
    const uint64_t part = std::min(step_bytes(chunk) - at, size - at % size);
    chunk.iov[io.iovcnt++] = {chunk.buffers[at / size].data() + at % size, part};
    at += part;
  }
  io.context = &chunk;
  io.done = [](backend::Io& finished) {
    Chunk& c = *static_cast<Chunk*>(finished.context);
    UnitStatistics::end_request(c.copier->counters(c), c.period);
    c.copier->go_on(c);
  };
  if (unit_of(chunk).backend().submit(io, *context_.aio)) return true;
  chunk.period = unit_of(chunk).statistics().begin_request(counters(chunk));
  return false;
}

// false: the request failed.
bool Copier::take_result(Chunk& chunk) {
  const backend::Io& io = chunk.io;
  const bool data = extent_.source != nullptr;
  if (io.result > 0 || (io.result == 0 && !data)) {
    chunk.moved += data ? static_cast<uint64_t>(io.result) : io.length;
    return true;
  }
  const int error = io.result < 0 ? static_cast<int>(-io.result) : EIO;
  if (medium_is_gone(error)) unit_of(chunk).medium_lost();
  if (error == ESHUTDOWN)
    command_.outcome = Outcome::kUnknown;  // fenced: never answered (DESIGN R4)
  CopyFault fault;
  fault.where = chunk.writing ? CopyFault::Where::kDestination : CopyFault::Where::kSource;
  fault.sense = sense_of_errno(error, io.op);
  if (error != ESHUTDOWN) {
    log_medium_failure(command_, unit_of(chunk),
                       {io.op, io.offset, io.length, std::strerror(error), error}, fault.sense);
  }
  fail(chunk, fault);
  return false;
}

void Copier::go_on(Chunk& chunk) {
  bool good = take_result(chunk);
  while (good && chunk.moved < step_bytes(chunk)) {
    if (!submit(chunk)) return;
    good = take_result(chunk);
  }
  release_range(chunk);
  if (!good || chunk.writing) return retire(chunk);
  chunk.writing = true;
  acquire(chunk);
}

void Copier::release_range(Chunk& chunk) {
  unit_of(chunk).ranges().release(context_.reactor, chunk.hold, context_.reactors);
}

void Copier::fail(const Chunk& chunk, const CopyFault& fault) {
  if (!fault_) fault_ = fault;
  failed_at_ = std::min(failed_at_, chunk.at);
}

void Copier::retire(Chunk& chunk) {
  chunk.busy = false;
  schedule();
}

}  // namespace sluice::lun
