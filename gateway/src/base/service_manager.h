// Tells systemd how the service is doing (sd_notify(3)), without its library: one datagram to the
// socket that NOTIFY_SOCKET names. Without one nothing happens.
#pragma once

#include <string>
#include <string_view>

namespace sluice::service_manager {

void ready(std::string_view status);  // READY=1: everything is up, or a reload is over
void reloading();                     // RELOADING=1
void stopping();                      // STOPPING=1

// For tests: sends `state` to the socket at `address` ("/path" or "@abstract"). False: it failed.
bool send(const std::string& address, std::string_view state);

}  // namespace sluice::service_manager
