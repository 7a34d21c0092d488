// Notifies systemd of the service's state (sd_notify(3)), without its library: one datagram to the
// socket in NOTIFY_SOCKET. Does nothing if that is not set.
#pragma once

#include <string>
#include <string_view>

namespace sluice::service_manager {

void ready(std::string_view status);  // READY=1: started, or a reload is complete
void reloading();                     // RELOADING=1
void stopping();                      // STOPPING=1

// For tests: sends `state` to the socket at `address` ("/path" or "@abstract"). False: failed.
bool send(const std::string& address, std::string_view state);

}  // namespace sluice::service_manager
