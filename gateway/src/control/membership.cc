#include "control/membership.h"

#include <algorithm>

#include "base/log.h"

namespace sluice::control {

std::string Membership::system(const std::string& stored) const {
  const std::lock_guard lock(mutex_);
  return confirmed_.empty() ? stored : confirmed_;
}

void Membership::introduce(const std::string& stored, size_t volumes,
                           wire::StreamHello* hello) const {
  const std::string ours = system(stored);
  hello->add_capabilities("ready");
  hello->set_system_id(ours);
  if (ours == stored) {
    hello->set_known_volumes(static_cast<uint32_t>(volumes));
    return;
  }
  hello->clear_held_version();
  hello->clear_held_digest();
}

Result<Admission> Membership::admit(const std::string& stored, const wire::StreamWelcome& welcome) {
  const std::string ours = system(stored);
  const std::string& theirs = welcome.system_id();
  // A release without system ids sends none; during an upgrade some replicas run it.
  if (!ours.empty() && !theirs.empty() && ours != theirs) {
    return Error{"the control plane (replica " + welcome.replica() + ") belongs to system " +
                 theirs + ", and this gateway to system " + ours +
                 ": the gateway serves on and takes no orders from it. Name the right "
                 "--control-plane, or restore that one's backup; if the gateway shall change to "
                 "system " +
                 theirs + " and release the volumes of the other: sluice-gateway accept-system " +
                 theirs};
  }
  Admission admission;
  const std::lock_guard lock(mutex_);
  if (!welcome.awaits_ready()) {
    was_gateway_ = true;
    return admission;
  }
  admission.answers = true;
  if (!was_gateway_ && ports_in_use_) {
    for (const std::string& address :
         ports_in_use_({welcome.listen().begin(), welcome.listen().end()})) {
      log::error(
          "another process listens where this gateway shall: it does not become the gateway",
          {{"address", address},
           {"remedy", "stop the other process, often a second sluice-gateway of this name"}});
      admission.ready.add_in_use(address);
      admission.joins = false;
    }
  }
  was_gateway_ = was_gateway_ || admission.joins;
  return admission;
}

Result<void> Membership::confirm(const std::string& system) {
  if (!valid_system_id(system)) {
    return Error{"'" + system.substr(0, 64) +
                 "' is no system id; `sluicectl status` shows the control plane's"};
  }
  log::warning("an administrator confirmed another system", {{"system", system}});
  const std::lock_guard lock(mutex_);
  confirmed_ = system;
  return {};
}

bool valid_system_id(const std::string& id) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return id.size() == kForm.size() &&
         std::equal(id.begin(), id.end(), kForm.begin(), [](char c, char form) {
           const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           return form == 'x' ? digit : c == form;
         });
}

}  // namespace sluice::control
