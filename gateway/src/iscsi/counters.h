// A reactor's counters of connections and sessions, for the metrics. (The unit counts what its LUN
// does: unit/statistics.h.)
//
// Threads: one Counters per reactor. Only that reactor writes it; any thread may read it at any
// time. A cell is a relaxed atomic that its single writer changes with a load and a store, without
// locked instructions on the I/O path. Each cell is read consistently, several cells only
// approximately. A number of present objects is the difference of two increasing counts: opened
// minus closed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iscsi/login/login.h"

namespace sluice::iscsi {

class CounterCell {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }  // gauges only
  operator uint64_t() const {                                           // NOLINT
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> value_{0};
};

// The results of logins: one slot per status of RFC 7143 §11.13.5, and two without a status.
inline constexpr size_t kLoginSlots = 20;
inline constexpr size_t kLoginTimedOut = 18;    // limits::kLoginTimeout passed
inline constexpr size_t kLoginDropped = 19;     // closed before it ended, by either side
size_t login_slot(LoginStatus status);          // 0 is success
std::string_view login_slot_name(size_t slot);  // "success", "authentication-failure", ...

inline constexpr size_t kRejectSlots = 16;  // by reason, RFC 7143 §11.17.1; others in slot 0
std::string_view reject_slot_name(size_t slot);
inline constexpr size_t kTaskFunctionSlots = 16;  // by function, RFC 7143 §11.5.1, 7144 §4.1
std::string_view task_function_slot_name(size_t slot);

// Cell is CounterCell in the reactor and uint64_t in a snapshot.
template <class Cell>
struct CounterFields {
  // --- wire: all bytes of the sockets, including headers, digests and padding
  Cell received_bytes{};
  Cell sent_bytes{};
  Cell received_pdus{};
  Cell sent_pdus{};
  // --- payload: SCSI data in data segments
  Cell data_out_bytes{};
  Cell data_in_bytes{};
  Cell commands{};  // accepted SCSI commands
  // --- connections
  Cell connections_opened{};   // accepted
  Cell connections_refused{};  // accepted and closed immediately, because a limit was reached
  Cell connections_evicted{};  // unauthenticated, closed to admit another one
  Cell connections_closed{};
  Cell nop_timeouts{};     // closed because a ping was not answered (DESIGN R6)
  Cell stale_discards{};   // bytes discarded after kDiscardSilence or a stall (R6)
  Cell protocol_errors{};  // connections dropped for a violation
  Cell header_digest_failures{};
  Cell data_digest_failures{};
  // --- sessions
  Cell sessions_opened{};  // normal sessions that reached full feature phase
  Cell sessions_closed{};
  Cell sessions_reinstated{};  // closed by a login with the same name, ISID and TPGT
  Cell discovery_opened{};
  Cell discovery_closed{};
  Cell logins_throttled{};  // refused without an evaluation of the CHAP response
  Cell logins_delayed{};    // refused with a delayed answer
  std::array<Cell, kLoginSlots> logins{};
  std::array<Cell, kRejectSlots> rejects{};
  std::array<Cell, kTaskFunctionSlots> task_functions{};
  // --- the reactor
  Cell busy_nanos{};  // time not spent waiting in the kernel
  Cell loops{};       // iterations of the event loop
  Cell sends{};       // gathered sends submitted
  // --- gauges: set() once per loop
  Cell buffer_in_use_bytes{};
  Cell buffer_reserved_bytes{};
  Cell buffer_budget_bytes{};
};

struct alignas(64) Counters : CounterFields<CounterCell> {};

using CounterValues = CounterFields<uint64_t>;

struct CountersSnapshot {
  std::vector<CounterValues> reactors;
  CounterValues total() const;
};

CounterValues read_counters(const Counters& counters);

}  // namespace sluice::iscsi
