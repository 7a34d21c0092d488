// Moves bytes from one unit to another, or writes zeros, on behalf of one command: the engine
// under EXTENDED COPY and WRITE USING TOKEN.
//
// A chunk holds its source blocks (shared) while it reads and its destination blocks (exclusive)
// while it writes, never both: whoever waits for blocks here holds none, so copies in opposite
// directions can't lock each other up. Rights are looked at under the hold, so that a PREEMPT AND
// ABORT on either unit, which waits for the writers it finds, is never outrun by a later chunk.
// Each of the two pays for the bytes it moves out of its unit's bandwidth, before it holds blocks:
// a copy that waits for bandwidth keeps nobody else waiting. Threads: the command's reactor.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "commands/command.h"
#include "commands/copies/third_party.h"
#include "scsi/sense.h"
#include "unit/unit.h"

namespace sluice::lun {

// Offsets in bytes, whole blocks. A length that isn't whole blocks of one of the units leaves the
// rest of the last source block out, and fills the last destination block up with zeros.
struct CopyExtent {
  std::shared_ptr<Unit> source;  // null: zeros
  std::shared_ptr<Unit> destination;
  uint64_t source_offset = 0;
  uint64_t destination_offset = 0;
  uint64_t bytes = 0;
};

struct CopyFault {
  enum class Where : uint8_t { kNone, kSource, kDestination, kAborted };
  Where where = Where::kNone;
  bool conflict = false;  // RESERVATION CONFLICT; else `sense`
  scsi::Sense sense;
  explicit operator bool() const { return where != Where::kNone; }
};

class Copier {
 public:
  explicit Copier(Command& command);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Takes memory for the chunks. false: there is none; answer BUSY.
  bool reserve_memory();
  // Asked with the source blocks held, before they are read; a key other than kNoSense stops.
  void set_check(std::function<scsi::Sense()> check) { check_ = std::move(check); }
  // `done` follows, never inside the call, when all is written or nothing is in flight any more.
  // One at a time.
  void run(const CopyExtent& extent, std::function<void(const CopyFault&)> done);
  // Bytes of the last extent that were written, counted from its start without a gap.
  uint64_t copied() const;

 private:
  static constexpr size_t kBuffers = limits::kCopyChunkBytes / BufferPool::kLargest;
  struct Chunk {
    Copier* copier = nullptr;
    std::array<BufferRef, kBuffers> buffers;
    std::array<iovec, kBuffers> iov;
    uint64_t capacity = 0;
    uint64_t at = 0;  // from the start of the extent
    uint64_t length = 0;
    uint64_t moved = 0;
    bool busy = false;
    bool writing = false;
    RangeHold hold;
    backend::Io io;
  };

  bool take_memory(Chunk& chunk);
  void schedule();
  void pump();
  void start(Chunk& chunk);
  Unit& unit_of(const Chunk& chunk) const;
  bool take_bandwidth(const Chunk& chunk) const;
  void acquire(Chunk& chunk);
  void granted(Chunk& chunk);
  CopyFault refusal(const Chunk& chunk) const;
  uint64_t step_bytes(const Chunk& chunk) const;
  void fill_up(Chunk& chunk) const;
  bool submit(Chunk& chunk);
  void go_on(Chunk& chunk);
  bool take_result(Chunk& chunk);
  void let_go(Chunk& chunk);
  void fail(const Chunk& chunk, const CopyFault& fault);
  void retire(Chunk& chunk);

  Command& command_;
  const ReactorContext context_;
  std::array<Chunk, limits::kCopyChunksInFlight> chunks_;
  std::function<scsi::Sense()> check_;
  CopyExtent extent_;
  std::function<void(const CopyFault&)> done_;
  CopyFault fault_;
  uint64_t taken_ = 0;      // bytes handed to chunks
  uint64_t failed_at_ = 0;  // lowest start of a chunk that failed
  uint64_t piece_ = 0;      // bytes per chunk
  bool overlapping_ = false;
  bool backward_ = false;
  bool scheduled_ = false;
};

}  // namespace sluice::lun
