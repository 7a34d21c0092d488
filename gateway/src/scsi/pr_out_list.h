// PERSISTENT RESERVE OUT (SPC-5 §6.17): what is asked for.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"
#include "scsi/transport_id.h"

namespace sluice::scsi {

enum class PrOutAction : uint8_t {  // SPC-5 table 218
  kRegister = 0,
  kReserve = 1,
  kRelease = 2,
  kClear = 3,
  kPreempt = 4,
  kPreemptAndAbort = 5,
  kRegisterAndIgnoreExistingKey = 6,
  kRegisterAndMove = 7,
};

enum class PrType : uint8_t {  // SPC-5 §6.16.3.4
  kNone = 0,
  kWriteExclusive = 1,
  kExclusiveAccess = 3,
  kWriteExclusiveRegistrantsOnly = 5,
  kExclusiveAccessRegistrantsOnly = 6,
  kWriteExclusiveAllRegistrants = 7,
  kExclusiveAccessAllRegistrants = 8,
};

constexpr bool is_write_exclusive(PrType t) {
  return t == PrType::kWriteExclusive || t == PrType::kWriteExclusiveRegistrantsOnly ||
         t == PrType::kWriteExclusiveAllRegistrants;
}
constexpr bool is_registrants_only(PrType t) {
  return t == PrType::kWriteExclusiveRegistrantsOnly ||
         t == PrType::kExclusiveAccessRegistrantsOnly;
}
constexpr bool is_all_registrants(PrType t) {
  return t == PrType::kWriteExclusiveAllRegistrants || t == PrType::kExclusiveAccessAllRegistrants;
}

// The TransportIDs of a parameter list, all of them checked. A view into the list.
class TransportIdList {
 public:
  TransportIdList() = default;
  explicit TransportIdList(ByteView ids) : ids_(ids) {}
  bool empty() const { return ids_.empty(); }
  // for (size_t at = 0; list.next(&at, &id);) ...
  bool next(size_t* at, TransportId* id) const;

 private:
  ByteView ids_{};
};

struct PrOutRequest {
  PrOutAction action = PrOutAction::kRegister;
  // kNone: the CDB's SCOPE or TYPE is none we know. RESERVE and RELEASE are then already refused;
  // PREEMPT has to be (05/24/00, invalid_pr_type()) only if it comes to reserving.
  PrType type = PrType::kNone;
  uint64_t key = 0;                   // RESERVATION KEY
  uint64_t service_action_key = 0;    // SERVICE ACTION RESERVATION KEY
  bool all_target_ports = false;      // ALL_TG_PT, REGISTER and REGISTER AND IGNORE EXISTING KEY
  bool aptpl = false;                 // the three REGISTERs only
  bool spec_i_pt = false;             // REGISTER only
  bool unregister = false;            // UNREG, REGISTER AND MOVE only
  uint16_t relative_target_port = 0;  // REGISTER AND MOVE only
  TransportIdList transport_ids{};    // SPEC_I_PT: any number; REGISTER AND MOVE: exactly one
};

// 05/24/00 at TYPE.
inline Sense invalid_pr_type() { return Sense::invalid_field_in_cdb(2, 3); }

Outcome<PrOutRequest> parse_pr_out(ByteView cdb, ByteView data);

}  // namespace sluice::scsi
