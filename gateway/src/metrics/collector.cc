#include "metrics/collector.h"

#include "metrics/families.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::metrics {
namespace {

using iscsi::CounterValues;
using std::to_string;

double number(uint64_t value) { return static_cast<double>(value); }

void add_traffic(Families& out, const CounterValues& c) {
  const auto wire = [&](const char* direction, uint64_t bytes) {
    out.counter("wire_bytes_total",
                "Bytes that passed the sockets: headers, digests, padding, data.",
                {{"direction", direction}}, number(bytes));
  };
  wire("receive", c.received_bytes);
  wire("send", c.sent_bytes);
  const auto pdus = [&](const char* direction, uint64_t count) {
    out.counter("pdus_total", "iSCSI PDUs.", {{"direction", direction}}, number(count));
  };
  pdus("receive", c.received_pdus);
  pdus("send", c.sent_pdus);
  const auto payload = [&](const char* direction, uint64_t bytes) {
    out.counter("payload_bytes_total", "SCSI data in PDUs, by the direction of the command.",
                {{"direction", direction}}, number(bytes));
  };
  payload("read", c.data_in_bytes);
  payload("write", c.data_out_bytes);
  out.counter("commands_total", "SCSI commands taken up.", {}, number(c.commands));
}

void add_connections(Families& out, const CounterValues& c) {
  out.gauge("connections", "TCP connections of initiators.", {},
            number(c.connections_opened - c.connections_closed));
  out.counter("connections_opened_total", "Connections accepted.", {},
              number(c.connections_opened));
  out.counter("connections_refused_total",
              "Connections closed at once because a limit was reached.", {},
              number(c.connections_refused));
  out.counter("connections_evicted_total",
              "Unauthenticated connections closed to make room for another one.", {},
              number(c.connections_evicted));
  const char* live = "Sessions in full feature phase.";
  out.gauge("sessions", live, {{"type", "normal"}}, number(c.sessions_opened - c.sessions_closed));
  out.gauge("sessions", live, {{"type", "discovery"}},
            number(c.discovery_opened - c.discovery_closed));
  const char* opened = "Sessions that reached full feature phase.";
  out.counter("sessions_opened_total", opened, {{"type", "normal"}}, number(c.sessions_opened));
  out.counter("sessions_opened_total", opened, {{"type", "discovery"}}, number(c.discovery_opened));
  out.counter("sessions_reinstated_total",
              "Sessions replaced by a login of the same initiator port.", {},
              number(c.sessions_reinstated));
  out.counter("logins_throttled_total",
              "Logins refused without an evaluation of the CHAP response: too many had failed.", {},
              number(c.logins_throttled));
  out.counter("logins_delayed_total", "Failed logins whose answer was held back.", {},
              number(c.logins_delayed));
  for (size_t i = 0; i < iscsi::kLoginSlots; ++i) {
    out.counter("logins_total", "Logins by how they ended (RFC 7143 §11.13.5).",
                {{"result", std::string(iscsi::login_slot_name(i))}}, number(c.logins.at(i)));
  }
}

void add_faults(Families& out, const CounterValues& c) {
  const char* digests = "PDUs whose CRC32C digest was wrong.";
  out.counter("digest_failures_total", digests, {{"part", "header"}},
              number(c.header_digest_failures));
  out.counter("digest_failures_total", digests, {{"part", "data"}}, number(c.data_digest_failures));
  for (size_t i = 0; i < iscsi::kRejectSlots; ++i) {
    out.counter("rejects_total", "Reject PDUs sent, by reason (RFC 7143 §11.17.1).",
                {{"reason", std::string(iscsi::reject_slot_name(i))}}, number(c.rejects.at(i)));
  }
  for (size_t i = 0; i < iscsi::kTaskFunctionSlots; ++i) {
    out.counter("task_management_functions_total", "Task management requests, by function.",
                {{"function", std::string(iscsi::task_function_slot_name(i))}},
                number(c.task_functions.at(i)));
  }
  out.counter("nop_timeouts_total", "Connections closed because a ping stayed unanswered.", {},
              number(c.nop_timeouts));
  out.counter("stale_discarded_bytes_total",
              "Bytes thrown away unread because they came too late to be safe.", {},
              number(c.stale_discards));
  out.counter("protocol_errors_total", "Connections dropped for breaking the protocol.", {},
              number(c.protocol_errors));
}

void add_reactor(Families& out, const std::string& reactor, const CounterValues& c) {
  const Labels labels = {{"reactor", reactor}};
  out.counter("reactor_busy_seconds_total", "Time the reactor was not asleep.", labels,
              number(c.busy_nanos) / 1e9);
  out.counter("reactor_loops_total", "Times around the event loop.", labels, number(c.loops));
  out.counter("reactor_sends_total", "Gathered sends; each answers a batch of commands.", labels,
              number(c.sends));
  out.gauge("buffer_used_bytes", "I/O buffers in use.", labels, number(c.buffer_in_use_bytes));
  out.gauge("buffer_reserved_bytes", "I/O buffers mapped from the kernel.", labels,
            number(c.buffer_reserved_bytes));
  out.gauge("buffer_budget_bytes", "What I/O buffers may take at most.", labels,
            number(c.buffer_budget_bytes));
}

const char* const kLatency =
    "From the arrival of a command's PDU, as its reactor saw it, to the end of the batch that "
    "answered "
    "it; what the network and a slow reader take is not in it.";

Labels labels_of(const lun::Target& target, const lun::Target::LunEntry& entry) {
  return {{"target", target.iqn()}, {"lun", to_string(entry.lun)}};
}

Labels with(Labels labels, const char* key, std::string_view value) {
  labels.emplace_back(key, std::string(value));
  return labels;
}

void add_lun_latency(Families& out, const Labels& lun, const lun::UnitSnapshot& s) {
  const auto histogram = [&](const char* operation, const lun::LatencySnapshot& latency) {
    out.histogram("lun_latency_seconds", kLatency, with(lun, "operation", operation), latency);
  };
  histogram("read", s.read_latency);
  histogram("write", s.write_latency);
  histogram("other", s.other_latency);
}

void add_lun(Families& out, const Labels& lun, const lun::Unit& unit) {
  const lun::UnitSnapshot s = unit.statistics().snapshot();
  for (size_t i = 0; i < lun::kActivities; ++i) {
    out.counter("lun_operations_total", "Commands completed, well or not.",
                with(lun, "operation", name_of(static_cast<lun::Activity>(i))),
                number(s.operations.at(i)));
  }
  const char* payload = "Data of successful commands.";
  out.counter("lun_payload_bytes_total", payload, with(lun, "operation", "read"),
              number(s.read_bytes));
  out.counter("lun_payload_bytes_total", payload, with(lun, "operation", "write"),
              number(s.written_bytes));
  const auto service = [&](const char* operation, const lun::LatencySnapshot& latency) {
    out.counter(
        "lun_service_seconds_total",
        "Sum of the latencies of all commands; /metrics/lun-latency has their distribution.",
        with(lun, "operation", operation), number(latency.sum) / 1e9);
  };
  service("read", s.read_latency);
  service("write", s.write_latency);
  service("other", s.other_latency);
  for (size_t i = 0; i < lun::kFailures; ++i) {
    if (s.failures.at(i) == 0) continue;
    out.counter("lun_failures_total",
                "Commands that ended with another status than GOOD, by kinds that the LUN has had.",
                with(lun, "kind", name_of(static_cast<lun::Failure>(i))), number(s.failures.at(i)));
  }
  out.gauge("lun_queue_depth", "Commands under way.", lun, number(s.in_flight));
  out.gauge("lun_size_bytes", "Capacity.", lun, number(unit.blocks() * unit.block_size()));
  out.gauge("lun_ready", "1 while the LUN serves I/O, 0 while it is NOT READY.", lun,
            (unit.gate() & lun::Unit::kNotReady) == 0 ? 1 : 0);
  out.gauge(
      "lun_stuck",
      "1 while the medium of the LUN completes none of its commands for 1.4 s, or one of them "
      "takes more than 10 s, else 0.",
      lun, unit.medium_hangs() ? 1 : 0);
}

}  // namespace

std::vector<prometheus::MetricFamily> Collector::Collect() const {
  Families out;
  out.gauge("build_info", "Constant 1; the labels tell what runs.", {{"version", sources_.version}},
            1);
  const iscsi::CountersSnapshot snapshot = sources_.counters();
  const CounterValues total = snapshot.total();
  add_traffic(out, total);
  add_connections(out, total);
  add_faults(out, total);
  for (size_t i = 0; i < snapshot.reactors.size(); ++i) {
    add_reactor(out, to_string(i), snapshot.reactors[i]);
  }
  for (const auto& target : sources_.exports->all()) {
    for (const auto& entry : target->luns()) {
      add_lun(out, labels_of(*target, entry), *entry.unit);
    }
  }
  return out.take();
}

std::vector<prometheus::MetricFamily> LunLatencyCollector::Collect() const {
  Families out;
  for (const auto& target : exports_.all()) {
    for (const auto& entry : target->luns()) {
      add_lun_latency(out, labels_of(*target, entry), entry.unit->statistics().snapshot());
    }
  }
  return out.take();
}

}  // namespace sluice::metrics
