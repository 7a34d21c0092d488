// Package identity serves CSI's Identity service: the driver's name, its capabilities, and whether it works.
package identity

import (
	"context"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// Service of a plugin.
type Service struct {
	csi.UnimplementedIdentityServer
	// Version of the program.
	Version string
	// Controller: the plugin has the controller service.
	Controller bool
	// Works returns the error that prevents the plugin from working; nil: none.
	Works func(ctx context.Context) error
}

// GetPluginInfo implements csi.IdentityServer.
func (s *Service) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: attachment.Driver, VendorVersion: s.Version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (s *Service) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{}
	offer := func(kind csi.PluginCapability_Service_Type) {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: kind}}})
	}
	if s.Controller {
		offer(csi.PluginCapability_Service_CONTROLLER_SERVICE)
	}
	offer(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	response.Capabilities = append(response.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}})
	return response, nil
}

// Probe implements csi.IdentityServer. A plugin that cannot work now is alive but not ready, because a restart would not help.
func (s *Service) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	err := s.Works(ctx)
	if err != nil {
		slog.WarnContext(ctx, "not ready", "problem", err)
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}
