// Devices is the device plugin of a lab's node: it offers GPUs and InfiniBand ports that are only device files.
//
//	devices nvidia.com/gpu=8:/dev/nvidia%d rdma/shared_ib0=100:/dev/infiniband/uverbs0
//
// A path with %d is one device per number; without it all are shares of the same device.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// again is how often a lost connection to kubelet is looked for.
const again = time.Second

type offer struct {
	plugin.UnimplementedDevicePluginServer
	name, path string
	count      int
}

func parse(word string) (*offer, error) {
	name, rest, _ := strings.Cut(word, "=")
	number, path, found := strings.Cut(rest, ":")
	count, err := strconv.Atoi(number)
	if err != nil || !found {
		return nil, fmt.Errorf("%q is not NAME=COUNT:PATH", word)
	}
	return &offer{name: name, path: path, count: count}, nil
}

func (o *offer) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (o *offer) ListAndWatch(_ *plugin.Empty, stream grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	var all []*plugin.Device
	for number := range o.count {
		all = append(all, &plugin.Device{ID: strconv.Itoa(number), Health: plugin.Healthy})
	}
	if err := stream.Send(&plugin.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (o *offer) Allocate(_ context.Context, asked *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, o.give(container.DevicesIds))
	}
	return answer, nil
}

// give shows devices to a container, and says which as NVIDIA's plugin does. Behind every file is the null device.
func (o *offer) give(ids []string) *plugin.ContainerAllocateResponse {
	given := &plugin.ContainerAllocateResponse{}
	if strings.HasPrefix(o.name, "nvidia.com/") {
		given.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")}
	}
	for _, id := range ids {
		path := strings.ReplaceAll(o.path, "%d", id)
		if len(given.Devices) == 0 || given.Devices[len(given.Devices)-1].ContainerPath != path {
			given.Devices = append(given.Devices, &plugin.DeviceSpec{HostPath: "/dev/null", ContainerPath: path, Permissions: "rw"})
		}
	}
	return given
}

// serve offers the devices until kubelet, which clears the folder as it starts, has taken the socket away.
func (o *offer) serve() error {
	endpoint := strings.ReplaceAll(o.name, "/", "_") + ".sock"
	socket := filepath.Join(plugin.DevicePluginPath, endpoint)
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, o)
	go server.Serve(listener)
	defer server.Stop()
	if err := o.register(endpoint); err != nil {
		return err
	}
	for {
		time.Sleep(again)
		if _, err := os.Stat(socket); err != nil {
			return err
		}
	}
}

func (o *offer) register(endpoint string) error {
	secret := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection, err := grpc.NewClient("unix://"+plugin.KubeletSocket, secret)
	if err != nil {
		return err
	}
	defer connection.Close()
	asked := &plugin.RegisterRequest{Version: plugin.Version, Endpoint: endpoint, ResourceName: o.name}
	_, err = plugin.NewRegistrationClient(connection).Register(context.Background(), asked)
	return err
}

func main() {
	var offers []*offer
	for _, word := range os.Args[1:] {
		found, err := parse(word)
		if err != nil {
			log.Fatal(err)
		}
		offers = append(offers, found)
	}
	for _, one := range offers {
		go func() {
			for {
				log.Printf("%s: %v", one.name, one.serve())
				time.Sleep(again)
			}
		}()
	}
	select {}
}
