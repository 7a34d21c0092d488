#include "cluster.h"

#include <filesystem>

#include "base/log.h"
#include "config/flags.h"
#include "control/owned_units.h"

namespace sluice {
namespace {

control::StreamOptions stream_options(const config::ControlPlaneConfig& config) {
  control::StreamOptions options;
  options.endpoints = config.endpoints;
  options.tls = {config.ca, config.certificate, config.key};
  options.insecure_loopback = config.insecure_loopback;
  return options;
}

control::Surroundings surroundings(lun::Exports& exports, net::Engine& engine) {
  return {
      .exports = exports,
      .reactors = engine.reactors(),
      .settings = {},
      .peers = {},
      .open_portal =
          [&engine](const control::wire::DesiredListener& listener) -> Result<std::string> {
        const auto tag = static_cast<uint16_t>(listener.portal_group_tag());
        const Result<void> open =
            engine.listen({{.address = listener.listen(), .tpgt = tag, .relative_port = tag}});
        if (!open) return Error{open.error()};
        return engine.addresses().back();
      },
      .close_portal =
          [](const control::wire::DesiredListener& listener) {
            log::warning("a portal that is no longer shown stays open until a restart",
                         {{"portal", listener.listen()}});
          },
      .review = [&engine](const std::string& iqn) { engine.review_access(iqn); },
  };
}

}  // namespace

Result<std::unique_ptr<control::Client>> join_cluster(const config::Config& config,
                                                      lun::Exports& exports, net::Engine& engine) {
  const std::filesystem::path state = config.state_directory;
  std::error_code failed;
  std::filesystem::create_directories(state, failed);
  if (!failed) {
    std::filesystem::permissions(state, std::filesystem::perms::owner_all, failed);
  }
  if (failed) {
    // It would serve, but not after a restart while the control plane is away (DESIGN R3).
    return Error{"the state directory " + config.state_directory +
                 " can't be used: " + failed.message() + "; give --state-dir"};
  }
  control::ClientSetup setup{
      .stream = stream_options(config.control_plane),
      .gateway = config.control_plane.gateway,
      .node = config.control_plane.node,
      .version = std::string(config::version()),
      .incarnation = control::fresh_incarnation(),
      .state_directory = config.state_directory,
      .around = surroundings(exports, engine),
      .units =
          [&engine](std::shared_ptr<lun::ReservationStore> store) {
            return control::owned_units(engine.reactors(), std::move(store));
          },
      .sessions = [&engine] { return engine.sessions(); },
      .evict = {},
      .peers = {},
      .busy_nanos = [&engine] { return engine.counters().total().busy_nanos; }};
  log::info("gateway of a cluster",
            {{"gateway", setup.gateway}, {"node", setup.node}, {"incarnation", setup.incarnation}});
  return control::Client::start(std::move(setup));
}

}  // namespace sluice
