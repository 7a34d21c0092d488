// What hosts meet at this gateway: refused logins, failed authentications, lost pings and digest
// errors, counted until the next report to the control plane.
//
// Threads: any. Nothing is recorded on the data path, only faults. The table is bounded; a peer
// that is not authenticated cannot fill it: one address gets at most half of the entries, and so do
// all addresses together from which no host has logged in. Further faults are counted without
// their names.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/limits.h"

namespace sluice::iscsi {

enum class HostFaultKind : uint8_t {
  kLoginRefused,  // status class 2 or 3 (RFC 7143 §11.13.5), except 0201; or no answer at all
  kAuthenticationFailed,  // status 0201
  kPingLost,              // no answer to a NOP-In, so the connection was closed
  kDigestError,           // the CRC32C of a header or of a data segment differs (§7.8)
};

// Equal faults since the last report. Texts of the peer are not authenticated.
struct HostFault {
  HostFaultKind kind = HostFaultKind::kLoginRefused;
  std::string initiator = {};  // iSCSI name; empty: the peer has not given one
  std::string address = {};    // in text form, without a port
  std::string target = {};     // IQN; empty: none was given, or a discovery session
  std::string reason = {};     // one clause, at most kMaxReason bytes
  uint64_t count = 1;

  static constexpr size_t kMaxReason = 256;
};

struct HostFaultReport {
  std::vector<HostFault> faults;  // at most limits::kMaxReportedInitiators
  uint64_t others = 0;            // faults that have no entry
  bool empty() const { return faults.empty() && others == 0; }
};

class HostFaults {
 public:
  // From an address from which a host has logged in, or from another one.
  enum class From : uint8_t { kKnown, kStranger };

  void record(HostFault fault, From from);
  // Faults since the last call.
  HostFaultReport take_report();

 private:
  bool room_for(const HostFault& fault, From from) const;

  std::mutex mutex_;
  HostFaultReport report_;
  size_t of_strangers_ = 0;  // entries of report_
};

}  // namespace sluice::iscsi
