#include "commands/medium_log.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "base/log.h"
#include "commands/command.h"
#include "commands/command_context.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

// The last line of one error of one unit, and the number of failures without a line since then.
struct Entry {
  std::array<uint8_t, 16> uuid{};
  int error = 0;
  Nanos written = 0;
  uint64_t suppressed = 0;
};

// Errors that share a slot replace each other: the log then has more lines, not more memory.
constexpr size_t kSlots = 64;
constinit thread_local std::array<Entry, kSlots> t_entries;

// Returns nullptr within the interval, and counts the failure.
Entry* admit(const Unit& unit, int error, Nanos now) {
  const std::array<uint8_t, 16>& uuid = unit.identity().uuid;
  const size_t slot = (uuid[15] ^ uuid[7] ^ static_cast<unsigned>(error)) % kSlots;
  Entry& entry = t_entries[slot];
  const bool same = entry.error == error && entry.uuid == uuid;
  if (same && now >= entry.written && now - entry.written < kMediumLogInterval) {
    ++entry.suppressed;
    return nullptr;
  }
  if (!same) entry = {uuid, error, now, 0};
  entry.written = now;
  return &entry;
}

const char* name_of(backend::Op op) {
  switch (op) {
    case backend::Op::kRead:
      return "read";
    case backend::Op::kWrite:
      return "write";
    case backend::Op::kFlush:
      return "flush";
    case backend::Op::kDiscard:
      return "unmap";
    case backend::Op::kWriteZeroes:
      return "write zeros";
    default:
      return "command";
  }
}

std::string text_of(const scsi::Sense& sense) {
  char text[16];
  std::snprintf(text, sizeof text, "%02X/%02X/%02X", static_cast<unsigned>(sense.key), sense.asc,
                sense.ascq);
  return text;
}

std::string blocks_of(const MediumFailure& failure, uint32_t block_size) {
  if (failure.length == 0) return "all";
  const uint64_t first = failure.offset / block_size;
  const uint64_t last = (failure.offset + failure.length - 1) / block_size;
  return std::to_string(first) + "-" + std::to_string(last);
}

}  // namespace

void log_medium_failure(const Command& command, const Unit& unit, const MediumFailure& failure,
                        const scsi::Sense& sense) {
  Entry* entry = admit(unit, failure.error, *command.nexus->reactor_context().now);
  if (!entry) return;
  log::error("the medium of a LUN failed a request",
             {{"target", command.nexus->port().target_name},
              {"lun", command.itl->lun()},
              {"volume", unit.uuid_text()},
              {"initiator", command.nexus->id().initiator_name},
              {"request", name_of(failure.op)},
              {"blocks", blocks_of(failure, unit.block_size())},
              {"cause", failure.cause},
              {"sense", text_of(sense)},
              {"not_logged_before", std::exchange(entry->suppressed, uint64_t{0})}});
}

}  // namespace sluice::lun
