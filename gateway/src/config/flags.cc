#include "config/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "backend/spec.h"
#include "config/complete.h"
#include "config/default_name.h"
#include "config/parse.h"
#include "config/protected_file.h"
#include "iscsi/login/names.h"

#ifndef SLUICE_VERSION
#define SLUICE_VERSION "0"
#endif

namespace sluice::config {
namespace {

constexpr int kWrongUsage = 2;

template <class T>
void take(CLI::Option* option, std::optional<T>* field) {
  if (option->count() > 0) *field = option->as<T>();
}

// What CLI11 fills; --target and --lun keep the order they were given in.
struct Parser {
  CLI::App app{"Sluice gateway: exports LUNs over iSCSI.", "sluice-gateway"};
  Flags flags;
  bool check = false;
  std::vector<std::string> target_names;
  std::vector<std::string> luns;
  CLI::Option* target = nullptr;
  CLI::Option* lun = nullptr;
  CLI::Option* reactors = nullptr;
  CLI::Option* metrics = nullptr;
  CLI::Option* state = nullptr;
  CLI::Option* admin = nullptr;
  CLI::Option* level = nullptr;
  CLI::Option* format = nullptr;
  CLI::App* sessions = nullptr;
  CLI::App* accept_system = nullptr;
  CLI::App* lun_figures = nullptr;
  std::string socket;

  Parser();
  void add_serving();
  void add_control_plane();
  void add_asking();
  void finish();
  void gather_targets();
};

Parser::Parser() {
  app.set_version_flag("--version", "sluice-gateway " SLUICE_VERSION);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_serving();
  add_control_plane();
  add_asking();
}

void Parser::add_serving() {
  app.add_option("--config", flags.config_file, "YAML file; every key: gateway/CONFIGURATION.md")
      ->type_name("FILE");
  app.add_flag("--check", check, "Validate, print a summary and exit: 0 fine, 2 not");
  app.add_option("--listen", flags.listen,
                 "Address to serve, as 127.0.0.1:3260; may be repeated; without it: 0.0.0.0:3260")
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  target = app.add_option("--target", target_names, "Target's iSCSI name; may be repeated")
               ->type_name("IQN")
               ->allow_extra_args(false)
               ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  lun = app.add_option("--lun", luns,
                       "LUN of the --target before it: 0=null:1GiB, 1=file:/disk.img,size=1GiB,"
                       "io=buffered,write-cache=off, 2=block:/dev/sdb; may be repeated")
            ->type_name("N=BACKEND")
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--chap-file", flags.chap_file,
                 "YAML file with hosts and secrets for every --target, mode 0600")
      ->type_name("FILE");
  reactors = app.add_option("--reactors", "Threads that serve connections")
                 ->type_name("N")
                 ->check([](const std::string& text) {
                   const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
                   return digits ? std::string() : "got '" + text + "', allowed 1 to 64";
                 });
  metrics = app.add_option("--metrics", "Address for Prometheus, 127.0.0.1:7462, or off")
                ->type_name("ADDRESS");
  state = app.add_option("--state-dir", "Where persistent reservations are kept")->type_name("DIR");
  admin = app.add_option("--admin-socket", "Local socket for the commands below, or off")
              ->type_name("PATH");
  level = app.add_option("--log-level", "debug, info, warning or error")->type_name("LEVEL");
  format = app.add_option("--log-format", "text or json")->type_name("FORMAT");
  app.add_flag("--core-dumps", flags.core_dumps, "Let a crash write a core file, secrets and all");
}

void Parser::add_control_plane() {
  ControlPlaneConfig& control = flags.control_plane;
  const auto option = [this](const char* name, auto& field, const char* meaning, const char* type) {
    return app.add_option(name, field, meaning)->type_name(type);
  };
  CLI::Option* endpoints =
      option("--control-plane", control.endpoints,
             "Replica of the control plane, host:7460; may be repeated. Targets and portals come "
             "from there",
             "HOST:PORT")
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (CLI::Option* needs :
       {option("--tls-ca", control.ca, "Authority of the replicas' certificates", "PEM"),
        option("--tls-cert", control.certificate, "This gateway's certificate", "PEM"),
        option("--tls-key", control.key, "Its private key", "PEM"),
        option("--gateway-name", control.gateway, "Name of its Gateway object", "NAME"),
        option("--node", control.node, "Name of its node", "NAME"),
        option("--device-records", control.device_records,
               "Records of volumes on whole devices; the node's gateways share it", "DIR"),
        app.add_flag("--insecure-loopback", control.insecure_loopback,
                     "No TLS, to loopback addresses only")}) {
    needs->needs(endpoints);
  }
}

void Parser::add_asking() {
  sessions = app.add_subcommand("sessions", "Show the sessions of a running gateway");
  lun_figures = app.add_subcommand("luns", "Show the LUNs of a running gateway and their figures");
  accept_system = app.add_subcommand(
      "accept-system",
      "Have a running gateway belong to another system; it releases the volumes of its former one");
  accept_system->add_option("system", flags.system_id, "System id, as `sluicectl status` shows it")
      ->required()
      ->type_name("UUID");
  for (CLI::App* command : {sessions, lun_figures, accept_system}) {
    if (command != accept_system) {
      command->add_flag("--json", flags.json, "JSON instead of a table");
    }
    command->add_option("--socket", socket, "The gateway's admin socket")->type_name("PATH");
  }
  app.require_subcommand(0, 1);
}

void Parser::gather_targets() {
  size_t next_target = 0;
  size_t next_lun = 0;
  for (const CLI::Option* option : app.parse_order()) {
    if (option == target) {
      flags.targets.push_back({target_names.at(next_target++), {}});
    } else if (option == lun) {
      if (flags.targets.empty()) flags.targets.emplace_back();
      flags.targets.back().luns.push_back(luns.at(next_lun++));
    }
  }
}

void Parser::finish() {
  gather_targets();
  take(reactors, &flags.reactors);
  take(metrics, &flags.metrics);
  take(state, &flags.state_directory);
  take(admin, &flags.admin_socket);
  take(level, &flags.log_level);
  take(format, &flags.log_format);
  if (!socket.empty()) flags.admin_socket = socket;
  if (check) flags.command = Flags::Command::kCheck;
  if (sessions->parsed()) flags.command = Flags::Command::kSessions;
  if (lun_figures->parsed()) flags.command = Flags::Command::kLuns;
  if (accept_system->parsed()) flags.command = Flags::Command::kAcceptSystem;
  const bool asking = sessions->parsed() || lun_figures->parsed() || accept_system->parsed();
  if (asking) return;
  const bool clustered = flags.control_plane.given();
  if (flags.config_file.empty() && flags.targets.empty() && !clustered) {
    throw CLI::ValidationError(
        "nothing to export; give --config FILE, --target and --lun, or --control-plane");
  }
  if (clustered && (!flags.targets.empty() || !flags.listen.empty() || !flags.chap_file.empty())) {
    throw CLI::ValidationError(
        "--listen, --target, --lun and --chap-file come from the control plane; remove them, or "
        "--control-plane");
  }
  const bool both = !flags.targets.empty() || !flags.listen.empty() || !flags.chap_file.empty();
  if (!flags.config_file.empty() && both) {
    throw CLI::ValidationError(
        "--config can't be joined by --listen, --target, --lun or --chap-file; write them there");
  }
}

Result<LunConfig> lun_from(const std::string& text) {
  const size_t equals = text.find('=');
  LunConfig lun;
  const char* end = text.data() + (equals == std::string::npos ? 0 : equals);
  const auto [stop, error] = std::from_chars(text.data(), end, lun.id);
  if (error != std::errc() || stop != end) {
    return Error{"--lun " + text + ": write its number first, as in --lun 0=null:1GiB"};
  }
  if (lun.id > limits::kMaxLunNumber) {
    return Error{"--lun " + text + ": got " + std::to_string(lun.id) + ", allowed 0 to 16383"};
  }
  Result<backend::Spec> spec = backend::parse_spec(std::string_view(text).substr(equals + 1));
  if (!spec) return Error{"--lun " + text + ": " + spec.error()};
  lun.spec = std::move(spec).value();
  return lun;
}

Result<TargetConfig> target_from(const Flags::Target& flag, const std::vector<HostConfig>& hosts) {
  Result<std::string> iqn =
      iscsi::normalise_name(flag.iqn.empty() ? default_target_name() : flag.iqn);
  if (!iqn) return Error{"--target " + flag.iqn + ": " + iqn.error()};
  TargetConfig target;
  target.iqn = std::move(iqn).value();
  target.hosts = hosts;
  for (const std::string& text : flag.luns) {
    Result<LunConfig> lun = lun_from(text);
    if (!lun) return Error{lun.error()};
    target.luns.push_back(std::move(lun).value());
  }
  return target;
}

Result<Config> from_flags(const Flags& flags) {
  Config config;
  for (const std::string& address : flags.listen) {
    Result<PortalConfig> portal = parse_portal(address);
    if (!portal) return Error{"--listen: " + portal.error()};
    config.portals.push_back(std::move(portal).value());
  }
  std::vector<HostConfig> hosts(1);  // any initiator
  if (!flags.chap_file.empty()) {
    const Result<Source> source = read_source(flags.chap_file);
    if (!source) return Error{"--chap-file: " + source.error()};
    Result<ChapFile> file = parse_chap_file(source.value());
    if (!file) return Error{"--chap-file: " + file.error()};
    config.discovery = file->discovery;
    if (file->hosts) hosts = *file->hosts;
  }
  for (const Flags::Target& flag : flags.targets) {
    Result<TargetConfig> target = target_from(flag, hosts);
    if (!target) return Error{target.error()};
    config.targets.push_back(std::move(target).value());
  }
  return config;
}

Result<Config> from_file(const std::string& path) {
  const Result<Source> source = read_source(path);
  if (!source) return Error{source.error()};
  return parse_config(source.value());
}

Result<void> override_with(const Flags& flags, Config* config) {
  if (flags.control_plane.given()) {
    if (!config->targets.empty() || !config->portals.empty()) {
      return Error{
          "--control-plane: targets and portals come from the control plane; remove `targets` and "
          "`listen` from " +
          flags.config_file};
    }
    config->control_plane = flags.control_plane;
  }
  if (flags.reactors) {
    if (*flags.reactors < 1 || *flags.reactors > limits::kMaxReactors) {
      return Error{"--reactors: got " + std::to_string(*flags.reactors) + ", allowed 1 to 64"};
    }
    config->reactors = *flags.reactors;
    if (config->reactor_cpus.size() != config->reactors) config->reactor_cpus.clear();
  }
  if (flags.metrics) {
    Result<std::string> metrics = parse_metrics(*flags.metrics);
    if (!metrics) return Error{"--metrics: " + metrics.error()};
    config->metrics = std::move(metrics).value();
  }
  if (flags.state_directory) config->state_directory = *flags.state_directory;
  if (flags.admin_socket) {
    config->admin_socket = *flags.admin_socket == "off" ? "" : *flags.admin_socket;
    config->admin_socket_given = true;
  }
  if (flags.log_level) {
    const Result<log::Level> level = parse_level(*flags.log_level);
    if (!level) return Error{"--log-level: " + level.error()};
    config->log.level = level.value();
  }
  if (flags.log_format) {
    if (*flags.log_format != "text" && *flags.log_format != "json") {
      return Error{"--log-format: got '" + *flags.log_format + "', allowed text or json"};
    }
    config->log.format = *flags.log_format == "json" ? log::Format::kJson : log::Format::kText;
  }
  config->core_dumps = config->core_dumps || flags.core_dumps;
  return {};
}

}  // namespace

std::string_view version() { return SLUICE_VERSION; }

Invocation parse_flags(int argc, const char* const* argv) {
  Parser parser;
  try {
    parser.app.parse(argc, argv);
    parser.finish();
    return {.flags = std::move(parser.flags), .output = {}, .exit_code = 0};
  } catch (const CLI::ParseError& e) {
    std::ostringstream out;
    const int code = parser.app.exit(e, out, out);
    return {.flags = {}, .output = out.str(), .exit_code = code == 0 ? 0 : kWrongUsage};
  }
}

Result<Config> load(const Flags& flags) {
  Result<Config> config =
      flags.config_file.empty() ? from_flags(flags) : from_file(flags.config_file);
  if (!config) return config;
  const Result<void> overridden = override_with(flags, &*config);
  if (!overridden) return Error{overridden.error()};
  if (!config->control_plane.key.empty()) {
    // One that isn't there yet may come; one that others can read is no secret any more.
    const Result<FileText> key = read_file(config->control_plane.key, limits::kMaxConfigBytes);
    if (key && !key.value().fault.empty()) return Error{key.value().fault};
  }
  const Result<void> done =
      complete(&*config, flags.config_file.empty() ? "command line" : flags.config_file);
  if (!done) return Error{done.error()};
  return config;
}

}  // namespace sluice::config
