// Copies bytes between units, or writes zeros, for one command: the engine of EXTENDED COPY and
// WRITE USING TOKEN.
//
// A chunk holds its source blocks (shared) while it reads and its destination blocks (exclusive)
// while it writes, never both. So a copy that waits for blocks holds none, and copies in opposite
// directions can't deadlock. Rights are checked while the blocks are held: a PREEMPT AND ABORT on
// either unit waits for the writers that it finds, and later chunks see the new rights. Each
// transfer is charged to the bandwidth of its unit before blocks are held, so a copy that waits for
// bandwidth blocks no other command.
//
// Threads: the command's reactor.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "commands/command.h"
#include "commands/copies/third_party.h"
#include "scsi/sense.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::lun {

// Offsets in bytes, multiples of a block. If the length is not a multiple of a unit's block, the
// rest of the last source block is omitted, and the last destination block is padded with zeros.
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
  bool conflict = false;  // RESERVATION CONFLICT; otherwise see `sense`
  scsi::Sense sense;
  explicit operator bool() const { return where != Where::kNone; }
};

class Copier {
 public:
  explicit Copier(Command& command);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Allocates memory for the chunks. False: out of memory; answer BUSY.
  bool reserve_memory();
  // `check` is called with the source blocks held, before each read; a key other than kNoSense
  // stops the copy.
  void set_check(std::function<scsi::Sense()> check) { check_ = std::move(check); }
  // Calls `done`, never within the call, when everything is written, or after an error when nothing
  // is in flight. One extent at a time.
  void run(const CopyExtent& extent, std::function<void(const CopyFault&)> done);
  // Bytes of the last extent that were written contiguously from its start.
  uint64_t copied() const;

 private:
  static constexpr size_t kBuffers = limits::kCopyChunkBytes / BufferPool::kLargest;
  struct Chunk {
    Copier* copier = nullptr;
    std::array<BufferRef, kBuffers> buffers;
    std::array<iovec, kBuffers> iov;
    uint64_t capacity = 0;
    uint64_t at = 0;  // offset from the start of the extent
    uint64_t length = 0;
    uint64_t moved = 0;
    bool busy = false;
    bool writing = false;
    uint8_t period = 0;  // of its request in progress (unit/request_ages.h)
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
  UnitStatistics::Shard& counters(const Chunk& chunk) const;
  void go_on(Chunk& chunk);
  bool take_result(Chunk& chunk);
  void release_range(Chunk& chunk);
  void fail(const Chunk& chunk, const CopyFault& fault);
  void retire(Chunk& chunk);

  Command& command_;
  const ReactorContext context_;
  std::array<Chunk, limits::kCopyChunksInFlight> chunks_;
  std::function<scsi::Sense()> check_;
  CopyExtent extent_;
  std::function<void(const CopyFault&)> done_;
  CopyFault fault_;
  uint64_t taken_ = 0;      // bytes assigned to chunks
  uint64_t failed_at_ = 0;  // lowest offset of a failed chunk
  uint64_t piece_ = 0;      // bytes per chunk
  bool overlapping_ = false;
  bool backward_ = false;
  bool scheduled_ = false;
};

}  // namespace sluice::lun
