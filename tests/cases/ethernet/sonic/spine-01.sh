# spine-01, AS 4200000002. Commands of SONiC with FRR; run them on the switch as root.
# Cages 1-16 are split into 2 ports of 400 Gb/s:
# choose such a HwSKU, or split them with `config interface breakout`, before this.
config hostname spine-01
sonic-db-cli CONFIG_DB hset "DEVICE_METADATA|localhost" docker_routing_config_mode split
config loopback add Loopback0
config interface ip add Loopback0 172.16.64.1/32
config interface ipv6 enable use-link-local-only Ethernet0
config interface ipv6 enable use-link-local-only Ethernet4
config interface ipv6 enable use-link-local-only Ethernet8
config interface ipv6 enable use-link-local-only Ethernet12
config interface ipv6 enable use-link-local-only Ethernet16
config interface ipv6 enable use-link-local-only Ethernet20
config interface ipv6 enable use-link-local-only Ethernet24
config interface ipv6 enable use-link-local-only Ethernet28
config interface ipv6 enable use-link-local-only Ethernet32
config interface ipv6 enable use-link-local-only Ethernet36
config interface ipv6 enable use-link-local-only Ethernet40
config interface ipv6 enable use-link-local-only Ethernet44
config interface ipv6 enable use-link-local-only Ethernet48
config interface ipv6 enable use-link-local-only Ethernet52
config interface ipv6 enable use-link-local-only Ethernet56
config interface ipv6 enable use-link-local-only Ethernet60
config interface ipv6 enable use-link-local-only Ethernet64
config interface ipv6 enable use-link-local-only Ethernet68
config interface ipv6 enable use-link-local-only Ethernet72
config interface ipv6 enable use-link-local-only Ethernet76
config interface ipv6 enable use-link-local-only Ethernet80
config interface ipv6 enable use-link-local-only Ethernet84
config interface ipv6 enable use-link-local-only Ethernet88
config interface ipv6 enable use-link-local-only Ethernet92
config interface ipv6 enable use-link-local-only Ethernet96
config interface ipv6 enable use-link-local-only Ethernet100
config interface ipv6 enable use-link-local-only Ethernet104
config interface ipv6 enable use-link-local-only Ethernet108
config interface ipv6 enable use-link-local-only Ethernet112
config interface ipv6 enable use-link-local-only Ethernet116
config interface ipv6 enable use-link-local-only Ethernet120
config interface ipv6 enable use-link-local-only Ethernet124
config qos reload
vtysh <<'FRR'
configure terminal
router bgp 4200000002
 bgp router-id 172.16.64.1
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 neighbor Ethernet0 interface remote-as external
 neighbor Ethernet4 interface remote-as external
 neighbor Ethernet8 interface remote-as external
 neighbor Ethernet12 interface remote-as external
 neighbor Ethernet16 interface remote-as external
 neighbor Ethernet20 interface remote-as external
 neighbor Ethernet24 interface remote-as external
 neighbor Ethernet28 interface remote-as external
 neighbor Ethernet32 interface remote-as external
 neighbor Ethernet36 interface remote-as external
 neighbor Ethernet40 interface remote-as external
 neighbor Ethernet44 interface remote-as external
 neighbor Ethernet48 interface remote-as external
 neighbor Ethernet52 interface remote-as external
 neighbor Ethernet56 interface remote-as external
 neighbor Ethernet60 interface remote-as external
 neighbor Ethernet64 interface remote-as external
 neighbor Ethernet68 interface remote-as external
 neighbor Ethernet72 interface remote-as external
 neighbor Ethernet76 interface remote-as external
 neighbor Ethernet80 interface remote-as external
 neighbor Ethernet84 interface remote-as external
 neighbor Ethernet88 interface remote-as external
 neighbor Ethernet92 interface remote-as external
 neighbor Ethernet96 interface remote-as external
 neighbor Ethernet100 interface remote-as external
 neighbor Ethernet104 interface remote-as external
 neighbor Ethernet108 interface remote-as external
 neighbor Ethernet112 interface remote-as external
 neighbor Ethernet116 interface remote-as external
 neighbor Ethernet120 interface remote-as external
 neighbor Ethernet124 interface remote-as external
 address-family ipv4 unicast
  network 172.16.64.1/32
  neighbor Ethernet0 activate
  neighbor Ethernet4 activate
  neighbor Ethernet8 activate
  neighbor Ethernet12 activate
  neighbor Ethernet16 activate
  neighbor Ethernet20 activate
  neighbor Ethernet24 activate
  neighbor Ethernet28 activate
  neighbor Ethernet32 activate
  neighbor Ethernet36 activate
  neighbor Ethernet40 activate
  neighbor Ethernet44 activate
  neighbor Ethernet48 activate
  neighbor Ethernet52 activate
  neighbor Ethernet56 activate
  neighbor Ethernet60 activate
  neighbor Ethernet64 activate
  neighbor Ethernet68 activate
  neighbor Ethernet72 activate
  neighbor Ethernet76 activate
  neighbor Ethernet80 activate
  neighbor Ethernet84 activate
  neighbor Ethernet88 activate
  neighbor Ethernet92 activate
  neighbor Ethernet96 activate
  neighbor Ethernet100 activate
  neighbor Ethernet104 activate
  neighbor Ethernet108 activate
  neighbor Ethernet112 activate
  neighbor Ethernet116 activate
  neighbor Ethernet120 activate
  neighbor Ethernet124 activate
  maximum-paths 64
 exit-address-family
end
write memory
FRR
config save -y
