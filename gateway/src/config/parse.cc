#include "config/parse.h"

#include <yaml-cpp/yaml.h>

#include <stdexcept>

#include "base/socket_address.h"
#include "config/parse_targets.h"
#include "config/protected_file.h"
#include "config/section.h"

namespace sluice::config {
namespace {

constexpr uint16_t kIscsiPort = 3260;
constexpr uint16_t kMetricsPort = 7462;

void read_portals(const Section& top, Config* config) {
  for (const Section& entry : top.list("listen", "listen")) {
    PortalConfig portal;
    portal.line.number = entry.line();
    for (auto [key, field] :
         {std::pair{"address", &portal.address}, {"advertise", &portal.advertise}}) {
      entry.text(key, field);
      if (field->empty()) continue;
      const Result<SocketAddress> address = parse_socket_address(*field, kIscsiPort);
      if (!address) {
        entry.fault(key, address.error());
      } else {
        *field = address.value().text();
      }
    }
    entry.number_as("tpgt", &portal.tpgt);
    config->portals.push_back(std::move(portal));
  }
}

void read_log(const Section& section, LogConfig* log) {
  std::string level = "info";
  std::string format = "text";
  section.choice("level", &level);
  section.choice("format", &format);
  if (const auto parsed = parse_level(level)) log->level = parsed.value();
  log->format = format == "json" ? log::Format::kJson : log::Format::kText;
}

iscsi::Offer::Digest digest_of(const std::string& word) {
  if (word == "require") return iscsi::Offer::Digest::kRequire;
  return word == "refuse" ? iscsi::Offer::Digest::kRefuse : iscsi::Offer::Digest::kAllow;
}

// RFC 7143 §13.15, §13.16: whole seconds on the wire.
void read_seconds(const Section& section, const char* key, uint32_t* seconds) {
  Nanos nanos = *seconds * kSecond;
  section.duration(key, &nanos);
  if (nanos % kSecond != 0) section.fault(key, "must be whole seconds");
  *seconds = static_cast<uint32_t>(nanos / kSecond);
}

void read_offer(const Section& section, iscsi::Offer* offer) {
  const auto size = [&](const char* key, uint32_t* field) {
    uint64_t bytes = *field;
    section.size(key, &bytes);
    *field = static_cast<uint32_t>(bytes);
  };
  size("max-recv-data-segment-length", &offer->max_recv_data_segment_length);
  size("max-burst-length", &offer->max_burst_length);
  size("first-burst-length", &offer->first_burst_length);
  if (offer->first_burst_length > offer->max_burst_length) {
    // Not given, it follows; given, it is a contradiction (RFC 7143 §13.14).
    if (section.has("first-burst-length")) {
      section.fault("first-burst-length", "is larger than max-burst-length");
    }
    offer->first_burst_length = offer->max_burst_length;
  }
  section.number_as("max-outstanding-r2t", &offer->max_outstanding_r2t);
  section.on_off("initial-r2t", &offer->initial_r2t);
  section.on_off("immediate-data", &offer->immediate_data);
  read_seconds(section, "default-time2wait", &offer->default_time2wait);
  read_seconds(section, "default-time2retain", &offer->default_time2retain);
  std::string header = "allow";
  std::string data = "allow";
  section.choice("header-digest", &header);
  section.choice("data-digest", &data);
  offer->header_digest = digest_of(header);
  offer->data_digest = digest_of(data);
}

void read_connections(const Section& section, ConnectionConfig* connections) {
  section.number_as("max", &connections->max);
  section.number_as("max-unauthenticated", &connections->max_unauthenticated);
  section.duration("login-timeout", &connections->login_timeout);
  section.duration("nop-silence", &connections->nop_silence);
  section.duration("nop-timeout", &connections->nop_timeout);
  section.number_as("command-window", &connections->command_window);
  // DESIGN R6: what arrives after kDiscardSilence is not submitted, so the peer must be known
  // dead by then.
  if (connections->nop_silence + connections->nop_timeout > limits::kDiscardSilence) {
    section.fault(section.has("nop-timeout") ? "nop-timeout" : "nop-silence",
                  "nop-silence and nop-timeout together exceed 3s");
  }
}

void read_control_plane(const Section& top, ControlPlaneConfig* control) {
  if (!top.has("control-plane")) return;
  const Section section = top.section("control-plane", "control-plane");
  control->line.number = section.line();
  section.texts("endpoints", &control->endpoints);
  section.text("ca", &control->ca);
  section.text("certificate", &control->certificate);
  section.text("key", &control->key);
  section.on_off("insecure-loopback", &control->insecure_loopback);
  section.text("gateway", &control->gateway);
  section.text("node", &control->node);
  section.text("device-records", &control->device_records);
  for (const char* key : {"listen", "gateway-number", "discovery", "targets"}) {
    if (top.has(key)) {
      top.fault(key, "comes from the control plane; remove it here, or remove control-plane");
    }
  }
}

void read_top(const Section& top, Config* config) {
  read_control_plane(top, &config->control_plane);
  read_portals(top, config);
  top.number_as("gateway-number", &config->gateway_number);
  top.number_as("reactors", &config->reactors);
  top.numbers("reactor-cpus", &config->reactor_cpus);
  if (!config->reactor_cpus.empty()) {
    if (config->reactors == 0)
      config->reactors = static_cast<unsigned>(config->reactor_cpus.size());
    if (config->reactors != config->reactor_cpus.size()) {
      top.fault("reactor-cpus", "must hold one CPU for each reactor");
    }
  }
  top.size("reactor-memory", &config->reactor_memory);
  top.text("tcp-congestion", &config->tcp_congestion);
  if (config->tcp_congestion == "system") config->tcp_congestion.clear();
  top.duration("busy-poll", &config->busy_poll);
  std::string metrics = "off";
  top.text("metrics", &metrics);
  Result<std::string> address = parse_metrics(metrics);
  if (address) {
    config->metrics = std::move(address).value();
  } else {
    top.fault("metrics", address.error());
  }
  config->admin_socket_given = top.has("admin-socket");
  top.text("admin-socket", &config->admin_socket);
  if (config->admin_socket == "off") config->admin_socket.clear();
  top.text("state-directory", &config->state_directory);
  top.on_off("core-dumps", &config->core_dumps);
  read_log(top.section("log", "log"), &config->log);
  read_offer(top.section("iscsi", "iscsi"), &config->offer);
  read_connections(top.section("connections", "connections"), &config->connections);
}

// Runs `read` over the document's top level and collects what it finds wrong.
template <class Read>
Result<void> read_document(const Source& source, std::string_view schema, Read read) {
  Faults faults(source.file);
  try {
    const YAML::Node document = YAML::Load(source.text);
    // An empty file asks for nothing: every default.
    read(Section(faults, schema, "",
                 document.IsNull() ? YAML::Node(YAML::NodeType::Map) : document));
  } catch (const YAML::Exception& e) {
    faults.add(e.mark.line >= 0 ? e.mark.line + 1 : 0, "", "not YAML: " + e.msg);
  }
  if (faults.none()) return {};
  return Error{faults.text()};
}

}  // namespace

Result<Source> read_source(const std::string& path) {
  Result<FileText> file = read_file(path, limits::kMaxConfigBytes);
  if (!file) return Error{file.error()};
  return Source{path, std::move(file->text), std::move(file->fault)};
}

Result<Config> parse_config(const Source& source) {
  Config config;
  const Result<void> done = read_document(source, "", [&](const Section& top) {
    read_top(top, &config);
    const SecretRules rules{source.fault};
    read_discovery(top.section("discovery", "discovery"), rules, &config.discovery);
    read_targets(top, rules, &config.targets);
  });
  if (!done) return Error{done.error()};
  return config;
}

Result<ChapFile> parse_chap_file(const Source& source) {
  if (!source.fault.empty()) return Error{source.fault};
  ChapFile file;
  const Result<void> done = read_document(source, "chap-file", [&](const Section& top) {
    const SecretRules rules;
    if (top.has("hosts")) read_hosts(top, rules, &file.hosts.emplace());
    read_discovery(top.section("discovery", "discovery"), rules, &file.discovery);
  });
  if (!done) return Error{done.error()};
  return file;
}

Result<PortalConfig> parse_portal(const std::string& address) {
  const Result<SocketAddress> parsed = parse_socket_address(address, kIscsiPort);
  if (!parsed) return Error{parsed.error()};
  PortalConfig portal;
  portal.address = parsed.value().text();
  return portal;
}

Result<std::string> parse_metrics(const std::string& address) {
  if (address == "off") return std::string();
  const Result<SocketAddress> parsed = parse_socket_address(address, kMetricsPort);
  if (!parsed) return Error{parsed.error()};
  return parsed.value().text();
}

Result<log::Level> parse_level(const std::string& name) {
  if (name == "debug") return log::Level::kDebug;
  if (name == "info") return log::Level::kInfo;
  if (name == "warning") return log::Level::kWarning;
  if (name == "error") return log::Level::kError;
  return Error{"'" + name + "' is not a log level; use debug, info, warning or error"};
}

}  // namespace sluice::config
