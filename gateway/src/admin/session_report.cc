#include "admin/session_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "admin/table.h"
#include "base/hex.h"

namespace sluice::admin {
namespace {

using nlohmann::ordered_json;

double seconds(Nanos nanos) { return static_cast<double>(nanos) / kSecond; }

std::string_view task_reporting(uint32_t value) {
  constexpr std::array<std::string_view, 3> kNames = {"RFC3720", "ResponseFence", "FastAbort"};
  return value < kNames.size() ? kNames.at(value) : "?";
}

// Key names and values as on the wire (RFC 7143 §13).
ordered_json negotiated(const iscsi::Parameters& p) {
  const auto digest = [](bool on) { return on ? "CRC32C" : "None"; };
  const auto yes = [](bool on) { return on ? "Yes" : "No"; };
  return {
      {"HeaderDigest", digest(p.header_digest)},
      {"DataDigest", digest(p.data_digest)},
      {"InitialR2T", yes(p.initial_r2t)},
      {"ImmediateData", yes(p.immediate_data)},
      {"MaxBurstLength", p.max_burst_length},
      {"FirstBurstLength", p.first_burst_length},
      {"MaxOutstandingR2T", p.max_outstanding_r2t},
      {"TargetMaxRecvDataSegmentLength", p.max_recv_data_segment_length},
      {"InitiatorMaxRecvDataSegmentLength", p.max_send_data_segment_length},
      {"MaxConnections", p.max_connections},
      {"DataPDUInOrder", yes(p.data_pdu_in_order)},
      {"DataSequenceInOrder", yes(p.data_sequence_in_order)},
      {"DefaultTime2Wait", p.default_time2wait},
      {"DefaultTime2Retain", p.default_time2retain},
      {"ErrorRecoveryLevel", p.error_recovery_level},
      {"TaskReporting", task_reporting(p.task_reporting)},
      {"iSCSIProtocolLevel", p.protocol_level},
  };
}

ordered_json to_json(const iscsi::SessionView& s) {
  const iscsi::Parameters& p = s.parameters;
  return {
      {"tsih", s.tsih},
      {"type", p.discovery ? "Discovery" : "Normal"},
      {"initiator", p.initiator_name},
      {"initiator_alias", p.initiator_alias},
      {"target", p.target_name},
      {"isid", hex_text(p.isid)},
      {"tpgt", p.tpgt},
      {"cid", s.cid},
      {"initiator_address", s.initiator_address},
      {"target_address", s.target_address},
      {"reactor", s.reactor},
      {"state", s.state},
      {"auth_method", p.auth_method},
      {"auth_user", p.auth_user},
      {"mutual_auth", p.mutual_auth},
      {"read_only", p.read_only},
      {"uptime_seconds", seconds(s.uptime)},
      {"silence_seconds", seconds(s.silence)},
      {"commands", s.commands},
      {"reads", s.reads},
      {"writes", s.writes},
      {"in_flight", s.in_flight},
      {"data_out_bytes", s.data_out_bytes},
      {"data_in_bytes", s.data_in_bytes},
      {"received_bytes", s.received_bytes},
      {"sent_bytes", s.sent_bytes},
      {"task_functions", s.task_functions},
      {"rejects", s.rejects},
      {"exp_cmd_sn", s.exp_cmd_sn},
      {"max_cmd_sn", s.max_cmd_sn},
      {"stat_sn", s.stat_sn},
      {"negotiated", negotiated(p)},
  };
}

std::string cell(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string authentication(const ordered_json& s) {
  std::string text = s.at("auth_method").get<std::string>();
  if (const auto user = s.at("auth_user").get<std::string>(); !user.empty()) text += " " + user;
  if (s.at("mutual_auth").get<bool>()) text += " mutual";
  return text;
}

std::string tables(const ordered_json& sessions) {
  Table who({"TSIH", "INITIATOR", "ISID", "TARGET", "TPGT", "FROM", "TO", "REACTOR", "STATE",
             "AUTH", "UP", "COMMANDS", "IN FLIGHT", "READ", "WRITTEN", "WIRE OUT", "WIRE IN"});
  std::vector<std::string> header = {"TSIH"};
  for (const auto& [key, value] : sessions.at(0).at("negotiated").items()) header.push_back(key);
  Table what(header);
  for (const ordered_json& s : sessions) {
    const auto bytes = [&](const char* key) { return human_bytes(s.at(key).get<uint64_t>()); };
    const bool discovery = s.at("type") == "Discovery";
    who.add({cell(s.at("tsih")), cell(s.at("initiator")), cell(s.at("isid")),
             discovery ? "(discovery)" : cell(s.at("target")), cell(s.at("tpgt")),
             cell(s.at("initiator_address")), cell(s.at("target_address")), cell(s.at("reactor")),
             cell(s.at("state")), authentication(s), human_seconds(s.at("uptime_seconds")),
             cell(s.at("commands")), cell(s.at("in_flight")), bytes("data_in_bytes"),
             bytes("data_out_bytes"), bytes("sent_bytes"), bytes("received_bytes")});
    std::vector<std::string> row = {cell(s.at("tsih"))};
    for (const auto& [key, value] : s.at("negotiated").items()) row.push_back(cell(value));
    row.resize(header.size());
    what.add(std::move(row));
  }
  return who.text() + "\n" + what.text();
}

}  // namespace

std::string sessions_json(const std::vector<iscsi::SessionView>& sessions) {
  ordered_json list = ordered_json::array();
  for (const iscsi::SessionView& session : sessions) list.push_back(to_json(session));
  // An initiator's alias need not be UTF-8.
  return list.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

Result<std::string> sessions_table(const std::string& json) {
  try {
    const ordered_json sessions = ordered_json::parse(json);
    if (sessions.empty()) return std::string("no sessions\n");
    return tables(sessions);
  } catch (const ordered_json::exception&) {
    return Error{"the gateway's list of sessions makes no sense to this version"};
  }
}

}  // namespace sluice::admin
