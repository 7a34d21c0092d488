// The record beside the data of a local volume: the lock's holder and how to reach it, the epoch,
// and the reservations (DESIGN R2). It takes precedence over an older state of the control plane.
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
//   reservations 214             bytes that follow (unit/reservations/reservation_store.h says in
//   what form)
//   ...
//   crc32c 8a9136aa              over everything above
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"
#include "unit/reservations/reservations.h"

namespace sluice::control {

// Identifies one process uniquely across restarts and boots.
struct Holder {
  int64_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  uint64_t pid_namespace = 0;
  std::string boot_id;
  std::string incarnation;
  std::string socket;
  bool operator==(const Holder&) const = default;
};

// The kernel's boot id; empty if /proc is unavailable.
const std::string& this_boot();
// This process; 0 and empty if /proc is unavailable.
Holder this_process(const std::string& incarnation, const std::string& socket);

struct Record {
  std::string volume;
  uint64_t epoch = 0;
  uint64_t order = 0;
  uint64_t generation = 0;
  Holder holder;
  lun::ReservationState reservations;
  // False: the newest text is damaged, and `reservations` may be older or empty; only the store
  // knows them. Not part of the text.
  bool reservations_known = true;
  bool operator==(const Record&) const = default;
};

// Orders records by age. Order numbers do not repeat within an epoch, unless the control plane's
// store was restored from a backup.
inline std::tuple<uint64_t, uint64_t> age_of(const Record& record) {
  return {record.epoch, record.order};
}

std::string format_record(const Record& record);
// `shown` is the record in errors.
Result<Record> parse_record(std::string_view text, const std::string& volume,
                            const std::string& shown);

}  // namespace sluice::control
