// Parameter data of PERSISTENT RESERVE IN (SPC-5 §6.16).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "scsi/pr_out_list.h"

namespace sluice::scsi {

enum class PrInAction : uint8_t {
  kReadKeys = 0,
  kReadReservation = 1,
  kReportCapabilities = 2,
  kReadFullStatus = 3,
};

struct PrRegistration {
  uint64_t key = 0;
  std::string_view initiator_name{};
  std::array<uint8_t, 6> isid{};
  bool all_target_ports = false;  // ALL_TG_PT: relative_target_port is then not shown
  uint16_t relative_target_port = 0;
  bool holder = false;          // R_HOLDER
  PrType type = PrType::kNone;  // of the reservation held, if holder
};

struct PrCapabilities {
  bool persist_capable = false;     // PTPL_C
  bool persist_active = false;      // PTPL_A: the last APTPL asked for
  bool compatible_reserve = false;  // CRH: RESERVE(6) by a registrant is compatible, SPC-5 §5.14.3
};

// Bytes that hold a READ FULL STATUS answer with these registrations.
size_t full_status_size(std::span<const PrRegistration> registrations);

size_t build_pr_read_keys(uint32_t generation, std::span<const uint64_t> keys, MutableBytes out);
// type kNone: no reservation. The key of an all-registrants reservation is shown as 0.
size_t build_pr_read_reservation(uint32_t generation, PrType type, uint64_t key, MutableBytes out);
size_t build_pr_report_capabilities(const PrCapabilities& capabilities, MutableBytes out);
size_t build_pr_read_full_status(uint32_t generation, std::span<const PrRegistration> registrations,
                                 MutableBytes out);

}  // namespace sluice::scsi
