// The text form of a unit's reservations; the parser is strict.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/limits.h"
#include "base/record_text.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::lun {
namespace {

constexpr std::string_view kMagic = "sluice-reservations 1";

uint64_t isid_value(const std::array<uint8_t, 6>& isid) { return load_be48(isid.data()); }

std::string format_ports(const NexusId& id) {
  return hex_number(isid_value(id.isid), 12) + ' ' + std::to_string(id.target_portal_group) + ' ' +
         std::to_string(id.relative_target_port);
}

std::string format_registration(const Registration& r) {
  if (!r.all_target_ports) {
    return "registration " + hex_number(r.key, 16) + ' ' + format_ports(r.nexus) + ' ' +
           r.nexus.initiator_name + '\n';
  }
  std::string except;
  for (uint16_t port : r.except_ports) except += (except.empty() ? "" : ",") + std::to_string(port);
  return "all-ports " + hex_number(r.key, 16) + ' ' + format_ports(r.nexus) + ' ' +
         (except.empty() ? "-" : except) + ' ' + r.nexus.initiator_name + '\n';
}

NexusId read_ports(WordReader& words) {
  NexusId id;
  store_be48(id.isid.data(), words.hex_number(12));
  id.target_portal_group = static_cast<uint16_t>(words.number(UINT16_MAX));
  id.relative_target_port = static_cast<uint16_t>(words.number(UINT16_MAX));
  return id;
}

std::string read_name(WordReader& words) {
  const std::string_view name = words.word();
  if (name.size() > limits::kMaxIscsiName) words.fail();
  return std::string(name);
}

// "-", or numbers that commas separate.
std::vector<uint16_t> read_port_list(WordReader& words) {
  std::vector<uint16_t> ports;
  std::string_view list = words.word();
  if (list == "-") return ports;
  while (!list.empty() && !words.bad()) {
    const size_t end = std::min(list.find(','), list.size());
    WordReader port(list.substr(0, end));
    ports.push_back(static_cast<uint16_t>(port.number(UINT16_MAX)));
    if (!port.complete()) words.fail();
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return ports;
}

bool known_type(uint64_t code) {
  return code == 0 || code == 1 || code == 3 || (code >= 5 && code <= 8);
}

// Rejects a state from a file that no sequence of commands can produce.
bool consistent(const ReservationState& s) {
  if (s.registrations.size() > limits::kMaxRegistrations) return false;
  if (s.type == ReservationType::kNone) return !s.holder;
  if (scsi::is_all_registrants(s.type)) return !s.holder && !s.registrations.empty();
  return s.holder && s.find(*s.holder);
}

bool read_registration(std::string_view kind, WordReader& words, ReservationState* state) {
  Registration r;
  r.key = words.hex_number(16);
  r.nexus = read_ports(words);
  r.all_target_ports = kind == "all-ports";
  if (r.all_target_ports) r.except_ports = read_port_list(words);
  r.nexus.initiator_name = read_name(words);
  state->registrations.push_back(std::move(r));
  return words.complete() && state->registrations.back().key != 0;
}

bool read_line(std::string_view line, ReservationState* state) {
  WordReader words(line);
  const std::string_view kind = words.word();
  if (kind == "generation") {
    state->generation = static_cast<uint32_t>(words.number(UINT32_MAX));
  } else if (kind == "aptpl") {
    state->aptpl = words.number(1) == 1;
  } else if (kind == "type") {
    const uint64_t code = words.number(8);
    if (!known_type(code)) return false;
    state->type = static_cast<ReservationType>(code);
  } else if (kind == "holder") {
    if (state->holder) return false;
    state->holder = read_ports(words);
    state->holder->initiator_name = read_name(words);
  } else if (kind == "registration" || kind == "all-ports") {
    return read_registration(kind, words, state);
  } else {
    return false;
  }
  return words.complete();
}

Error broken(const std::string& name, const std::string& what) {
  return Error{"the reservations in " + name + " can't be trusted (" + what +
               "); restore the file, or move it away to start with no reservations, after making "
               "sure that no other host relies on them"};
}

}  // namespace

std::string format_reservations(const std::string& unit_uuid, const ReservationState& state) {
  std::string text(kMagic);
  text += "\nunit " + unit_uuid + '\n';
  text += "generation " + std::to_string(state.generation) + '\n';
  text += std::string("aptpl ") + (state.aptpl ? '1' : '0') + '\n';
  text += "type " + std::to_string(static_cast<int>(state.type)) + '\n';
  if (state.holder) {
    text += "holder " + format_ports(*state.holder) + ' ' + state.holder->initiator_name + '\n';
  }
  for (const Registration& r : state.registrations) text += format_registration(r);
  return seal(std::move(text));
}

Result<ReservationState> parse_reservations(std::string_view text, const std::string& unit_uuid,
                                            const std::string& name) {
  const std::optional<std::string_view> body = unseal(text);
  if (!body) return broken(name, "it is cut short, or its checksum is wrong");
  ReservationState state;
  size_t number = 0;
  for (std::string_view rest = *body; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return broken(name, "it is cut short");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (number == 0) {
      if (line != kMagic) return broken(name, "it is of another format or version");
    } else if (number == 1) {
      if (line != "unit " + unit_uuid) return broken(name, "it belongs to another volume");
    } else if (!read_line(line, &state)) {
      return broken(name, "line " + std::to_string(number + 1) + " makes no sense");
    }
  }
  if (number < 2 || !consistent(state)) return broken(name, "it contradicts itself");
  return state;
}

}  // namespace sluice::lun
