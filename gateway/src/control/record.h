// What is known beside the data of a local volume: who holds its lock and how to ask for it, the
// epoch, the reservations (DESIGN R2). It wins over any older word of the control plane.
//
// Who has just got the lock and has no new epoch yet says so in a file of its own, which is not
// synced (`.holder`, in the same form): only its holder and order count, and only until the next
// boot. Everything else, and what has to be there after a power cut, is in the record.
//
//   sluice-volume 1
//   volume 5f0c7a3e-...
//   epoch 7
//   order 12                     that the holder acted on
//   generation 3                 of the reservations, as the control plane counts them
//   process 4711 991234 4026531836    pid, start time in ticks since boot, pid namespace
//   boot 1b4e28ba-...
//   incarnation 9f31...
//   socket gateway-3.sock        in this directory
//   reservations 214             bytes that follow (lun/reservation_store.h says in what form)
//   ...
//   crc32c 8a9136aa              over everything above
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/files.h"
#include "lun/reservations.h"

namespace sluice::control {

// One process, so that it can be told from every other that was or will be.
struct Holder {
  int64_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  uint64_t pid_namespace = 0;
  std::string boot_id;
  std::string incarnation;
  std::string socket;
  bool operator==(const Holder&) const = default;
};

// This process; 0 and empty where /proc doesn't say.
Holder this_process(const std::string& incarnation, const std::string& socket);

struct Record {
  std::string volume;
  uint64_t epoch = 0;
  uint64_t order = 0;
  uint64_t generation = 0;
  Holder holder;
  lun::ReservationState reservations;
  bool operator==(const Record&) const = default;
};

std::string format_record(const Record& record);
// `shown` is how errors call the record.
Result<Record> parse_record(std::string_view text, const std::string& volume,
                            const std::string& shown);

class RecordFile {
 public:
  // `directory` is `.sluice` in the pool, open for the life of this object.
  RecordFile(int directory, std::string volume, std::string shown);

  // nullopt: there is none yet. A record that can't be trusted is an error: hosts rely on the
  // reservations in it. A note of a holder that can't be used is as none: whoever is named wrongly
  // is asked in vain, and the lock itself decides.
  Result<std::optional<Record>> read() const;
  // By whoever holds the lock on the data, and only then. An older epoch than the recorded one is
  // refused.
  Result<void> claim(const Record& record, Outlasts outlasts) const;
  // Refused unless this very process is recorded as holder, in this epoch: a writer that a dying
  // disk held up until another gateway had the lock changes nothing any more.
  Result<void> update(const Record& record) const;

 private:
  Result<FileDescriptor> guard() const;
  Result<void> write(const Record& record) const;
  Result<void> note(const Record& record) const;
  void read_note(Record* record) const;

  const int directory_;
  const std::string volume_;
  const std::string shown_;
};

}  // namespace sluice::control
