#include "iscsi/counters.h"

#include <algorithm>

namespace sluice::iscsi {
namespace {

constexpr std::array<std::string_view, kLoginSlots> kLoginNames = {
    "success",
    "moved-temporarily",
    "moved-permanently",
    "initiator-error",
    "authentication-failure",
    "authorization-failure",
    "not-found",
    "target-removed",
    "unsupported-version",
    "too-many-connections",
    "missing-parameter",
    "cannot-include-in-session",
    "session-type-not-supported",
    "session-does-not-exist",
    "invalid-during-login",
    "target-error",
    "service-unavailable",
    "out-of-resources",
    "timed-out",
    "dropped",
};

constexpr std::array<std::string_view, kRejectSlots> kRejectNames = {
    "other",
    "reserved",
    "data-digest-error",
    "snack-reject",
    "protocol-error",
    "command-not-supported",
    "immediate-command-reject",
    "task-in-progress",
    "invalid-data-ack",
    "invalid-pdu-field",
    "long-operation-reject",
    "deprecated",
    "waiting-for-logout",
    "13",
    "14",
    "15",
};

constexpr std::array<std::string_view, kTaskFunctionSlots> kTaskFunctionNames = {
    "other",
    "abort-task",
    "abort-task-set",
    "clear-aca",
    "clear-task-set",
    "logical-unit-reset",
    "target-warm-reset",
    "target-cold-reset",
    "task-reassign",
    "query-task",
    "query-task-set",
    "i-t-nexus-reset",
    "query-asynchronous-event",
    "13",
    "14",
    "15",
};

template <class From, class To, class Visit>
void each_array(From& from, To& to, Visit visit) {
  for (size_t i = 0; i < to.size(); ++i) visit(from[i], to[i]);
}

// Every field once; the assertion below finds one that was left out.
template <class From, class To, class Visit>
void each(From& from, To& to, Visit visit) {
  visit(from.received_bytes, to.received_bytes);
  visit(from.sent_bytes, to.sent_bytes);
  visit(from.received_pdus, to.received_pdus);
  visit(from.sent_pdus, to.sent_pdus);
  visit(from.data_out_bytes, to.data_out_bytes);
  visit(from.data_in_bytes, to.data_in_bytes);
  visit(from.commands, to.commands);
  visit(from.connections_opened, to.connections_opened);
  visit(from.connections_refused, to.connections_refused);
  visit(from.connections_evicted, to.connections_evicted);
  visit(from.connections_closed, to.connections_closed);
  visit(from.nop_timeouts, to.nop_timeouts);
  visit(from.stale_discards, to.stale_discards);
  visit(from.protocol_errors, to.protocol_errors);
  visit(from.header_digest_failures, to.header_digest_failures);
  visit(from.data_digest_failures, to.data_digest_failures);
  visit(from.sessions_opened, to.sessions_opened);
  visit(from.sessions_closed, to.sessions_closed);
  visit(from.sessions_reinstated, to.sessions_reinstated);
  visit(from.discovery_opened, to.discovery_opened);
  visit(from.discovery_closed, to.discovery_closed);
  visit(from.logins_throttled, to.logins_throttled);
  visit(from.logins_delayed, to.logins_delayed);
  each_array(from.logins, to.logins, visit);
  each_array(from.rejects, to.rejects, visit);
  each_array(from.task_functions, to.task_functions, visit);
  visit(from.busy_nanos, to.busy_nanos);
  visit(from.loops, to.loops);
  visit(from.sends, to.sends);
  visit(from.buffer_in_use_bytes, to.buffer_in_use_bytes);
  visit(from.buffer_reserved_bytes, to.buffer_reserved_bytes);
  visit(from.buffer_budget_bytes, to.buffer_budget_bytes);
}
constexpr size_t kVisited = 29 + kLoginSlots + kRejectSlots + kTaskFunctionSlots;
static_assert(sizeof(CounterValues) == kVisited * sizeof(uint64_t), "each() misses a field");

}  // namespace

size_t login_slot(LoginStatus status) {
  const auto code = static_cast<unsigned>(status);
  const unsigned detail = code & 0xff;
  switch (code >> 8) {
    case 0x00:
      return 0;
    case 0x01:
      return std::clamp(detail, 1u, 2u);
    case 0x02:
      return detail <= 0x0b ? 3 + detail : 3;
    default:
      return detail <= 0x02 ? 15 + detail : 15;
  }
}

std::string_view login_slot_name(size_t slot) { return kLoginNames.at(slot); }
std::string_view reject_slot_name(size_t slot) { return kRejectNames.at(slot); }
std::string_view task_function_slot_name(size_t slot) { return kTaskFunctionNames.at(slot); }

CounterValues read_counters(const Counters& counters) {
  CounterValues values;
  each(counters, values, [](const CounterCell& from, uint64_t& to) { to = from; });
  return values;
}

CounterValues CountersSnapshot::total() const {
  CounterValues sum;
  for (const CounterValues& one : reactors) {
    each(one, sum, [](uint64_t from, uint64_t& to) { to += from; });
  }
  return sum;
}

}  // namespace sluice::iscsi
